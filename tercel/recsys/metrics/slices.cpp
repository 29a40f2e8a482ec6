#include "tercel/recsys/metrics/slices.h"

#include <algorithm>
#include <memory>

#include "tercel/recsys/metrics/metric_options.h"
#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

SliceMetrics::SliceMetrics(Span<std::string> metrics) {
  for (const std::string& name : metrics)
    if (!make_metric(name, "metrics")->needs_groups()) metrics_.push_back(name);
}

Slice SliceMetrics::measure(Span<GroupedRow> rows) const {
  std::vector<float> logits, labels, weights;
  double sum = 0, weight = 0;
  for (const GroupedRow& row : rows) {
    logits.push_back(row.logit);
    labels.push_back(row.label);
    weights.push_back(row.weight);
    sum += static_cast<double>(row.weight) * static_cast<double>(row.label);
    weight += static_cast<double>(row.weight);
  }
  Slice slice{rows.front().group, {}, static_cast<int64_t>(rows.size()), sum / weight, {}};
  const MetricRows all{logits, labels, weights};
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
    if (weight != 0) rows_.push_back({keys[i], rows.logits[i], rows.labels[i], weight});
  }
}

std::vector<Slice> SliceMetrics::most_frequent(int64_t count) {
  sort_by_group(rows_);
  std::vector<Span<GroupedRow>> groups;
  for (size_t first = 0; first < rows_.size();) {
    const size_t end = end_of_group(rows_, first);
    groups.emplace_back(rows_.data() + first, end - first);
    first = end;
  }
  const auto more_rows = [](Span<GroupedRow> a, Span<GroupedRow> b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front().group < b.front().group;
  };
  const size_t kept = std::min(groups.size(), static_cast<size_t>(std::max<int64_t>(count, 0)));
  std::partial_sort(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(kept), groups.end(), more_rows);
  std::vector<Slice> slices;
  for (size_t i = 0; i < kept; ++i) slices.push_back(measure(groups[i]));
  return slices;
}

}  // namespace tercel::recsys
