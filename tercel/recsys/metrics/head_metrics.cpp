#include "tercel/recsys/metrics/head_metrics.h"

#include <cmath>
#include <limits>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/metrics/values_impl.h"

namespace tercel::recsys {

namespace {

constexpr std::string_view kRanking = "auc", kLogLoss = "log_loss";

}  // namespace

HeadMetrics::HeadMetrics(std::vector<Head> heads) : heads_(std::move(heads)) {
  for (size_t h = 0; h < heads_.size(); ++h) metrics_.push_back(make_metrics());
}

void HeadMetrics::add(Span<Tensor> logits, const Tensor& labels) {
  for (size_t h = 0; h < heads_.size(); ++h) {
    const Tensor scores = to(logits[h], kFloat32).contiguous();
    const Tensor targets = to(labels.narrow(1, heads_[h].first_label, heads_[h].label_columns), kFloat32).contiguous();
    for (const auto& metric : metrics_[h]) metric->add(values_of(scores), values_of(targets));
  }
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
    for (const auto& metric : metrics_[h]) {
      const double value = metric->value();
      all.emplace_back(several ? std::string(metric->name()) + "/" + heads_[h].name : std::string(metric->name()),
                       value);
      if (share == 0) continue;
      if (metric->name() == kLogLoss) has_nan |= std::isnan(value);
      if (metric->name() == kRanking && !std::isnan(value)) {
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
