#include "tercel/recsys/metrics/slices.h"

#include <algorithm>
#include <memory>

#include "tercel/recsys/metrics/metric_options.h"
#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

SliceMetrics::SliceMetrics(Span<std::string> metrics) : metrics_(metrics.begin(), metrics.end()) {
  for (const std::string& name : metrics_) make_metric(name, "metrics");
}

Slice SliceMetrics::measure(Span<Row> rows) const {
  std::vector<float> logits, labels, weights;
  std::vector<int64_t> groups;
  double sum = 0, weight = 0;
  for (const auto& [key, row] : rows) {
    logits.push_back(row.logit);
    labels.push_back(row.label);
    weights.push_back(row.weight);
    groups.push_back(row.group);
    sum += static_cast<double>(row.weight) * static_cast<double>(row.label);
    weight += static_cast<double>(row.weight);
  }
  Slice slice{rows.front().key, {}, static_cast<int64_t>(rows.size()), sum / weight, {}};
  const MetricRows all{logits, labels, weights, groups};
  for (const std::string& name : metrics_) {
    const std::unique_ptr<Metric> metric = make_metric(name, "metrics");
    metric->add(all);
    slice.values.emplace_back(name, metric->value());
  }
  return slice;
}

void SliceMetrics::add(const MetricRows& rows, Span<int64_t> keys) {
  TERCEL_CHECK(keys.size() == rows.logits.size(), ValueError, "slices: ", rows.logits.size(), " logits for ",
               keys.size(), " keys");
  for (size_t i = 0; i < keys.size(); ++i) {
    const float weight = rows.weights.empty() ? 1.0f : rows.weights[i];
    if (weight == 0) continue;
    const int64_t group = rows.groups.empty() ? 0 : rows.groups[i];
    rows_.push_back({keys[i], {group, rows.logits[i], rows.labels[i], weight}});
  }
}

std::vector<Slice> SliceMetrics::most_frequent(int64_t count) {
  std::sort(rows_.begin(), rows_.end(),
            [](const Row& a, const Row& b) { return a.key != b.key ? a.key < b.key : a.row < b.row; });
  std::vector<Span<Row>> groups;
  for (size_t first = 0; first < rows_.size();) {
    size_t end = first;
    while (end < rows_.size() && rows_[end].key == rows_[first].key) ++end;
    groups.emplace_back(rows_.data() + first, end - first);
    first = end;
  }
  const auto more_rows = [](Span<Row> a, Span<Row> b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front().key < b.front().key;
  };
  const size_t kept = std::min(groups.size(), static_cast<size_t>(std::max<int64_t>(count, 0)));
  std::partial_sort(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(kept), groups.end(), more_rows);
  std::vector<Slice> slices;
  for (size_t i = 0; i < kept; ++i) slices.push_back(measure(groups[i]));
  return slices;
}

}  // namespace tercel::recsys
