#include "tercel/recsys/metrics/head_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/metrics/binary_problems.h"
#include "tercel/recsys/metrics/values_impl.h"

namespace tercel::recsys {

namespace {

constexpr std::string_view kRanking = "auc", kLogLoss = "log_loss";

}  // namespace

HeadMetrics::HeadMetrics(std::vector<Head> heads) : heads_(std::move(heads)) {
  for (const Head& head : heads_) {
    std::vector<Metrics>& of_head = metrics_.emplace_back();
    for (int64_t i = 0; i < count_binary_problems(head); ++i) of_head.push_back(make_metrics());
  }
  has_nan_.assign(heads_.size(), false);
}

void HeadMetrics::add(Span<Tensor> logits, const Tensor& labels) {
  for (size_t h = 0; h < heads_.size(); ++h) {
    const Tensor scores = to(logits[h], kFloat32).contiguous();
    const Tensor targets = to(labels.narrow(1, heads_[h].first_label, heads_[h].label_columns), kFloat32).contiguous();
    if (heads_[h].kind == LossKind::Binary) {
      for (const auto& metric : metrics_[h][0]) metric->add(values_of(scores), values_of(targets));
      continue;
    }
    const Span<float> all = values_of(scores);
    has_nan_[h] = has_nan_[h] || std::any_of(all.begin(), all.end(), [](float x) { return std::isnan(x); });
    const std::vector<BinaryRows> problems = binary_problems(heads_[h], all, values_of(targets));
    for (size_t i = 0; i < problems.size(); ++i)
      for (const auto& metric : metrics_[h][i]) metric->add(problems[i].logits, problems[i].labels);
  }
}

double HeadMetrics::value_of(size_t head, size_t metric) const {
  const std::vector<Metrics>& problems = metrics_[head];
  if (problems.size() == 1) return problems[0][metric]->value();
  double sum = 0;
  int64_t defined = 0;
  for (const Metrics& metrics : problems) {
    const double value = metrics[metric]->value();
    if (std::isnan(value)) continue;
    sum += value;
    ++defined;
  }
  if (has_nan_[head] || defined == 0) return std::numeric_limits<double>::quiet_NaN();
  return sum / static_cast<double>(defined);
}

std::vector<std::pair<std::string, double>> HeadMetrics::values() const {
  std::vector<std::pair<std::string, double>> all;
  const bool several = heads_.size() > 1;
  if (several) all.emplace_back(kRanking, 0.0);
  double weights = 0, sum = 0, shares = 0;
  bool has_nan = false;  // logits of a head
  for (const Head& head : heads_) weights += head.weight;
  for (size_t h = 0; h < heads_.size(); ++h) {
    const double share = weights > 0 ? heads_[h].weight / weights : 1 / static_cast<double>(heads_.size());
    for (size_t m = 0; m < metrics_[h][0].size(); ++m) {
      const std::string name(metrics_[h][0][m]->name());
      const double value = value_of(h, m);
      all.emplace_back(several ? name + "/" + heads_[h].name : name, value);
      if (share == 0) continue;
      if (name == kLogLoss) has_nan |= std::isnan(value);
      if (name == kRanking && !std::isnan(value)) {
        sum += share * value;
        shares += share;
      }
    }
  }
  if (several && (has_nan || shares == 0))
    all[0].second = std::numeric_limits<double>::quiet_NaN();
  else if (several)
    all[0].second = sum / shares;
  return all;
}

}  // namespace tercel::recsys
