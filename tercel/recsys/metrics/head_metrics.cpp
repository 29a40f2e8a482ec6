#include "tercel/recsys/metrics/head_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/suggest.h"

namespace tercel::recsys {

namespace {

constexpr std::string_view kRanking = "auc";
constexpr int64_t kBins = 20;

/** The rows that a metric of a head of classes takes once for all of them; null: those of each class. */
const MetricRows* rows_of_all(const HeadRows& rows, std::string_view metric) {
  if (!rows.has_classes()) return nullptr;
  if (metric == "log_loss" || metric == "average_loss") return &rows.own_class();
  return metric == "accuracy" ? &rows.margin() : nullptr;
}

bool has_nan(const MetricRows& rows) {
  for (size_t i = 0; i < rows.logits.size(); ++i)
    if (std::isnan(rows.logits[i]) && (rows.weights.empty() || rows.weights[i] != 0)) return true;
  return false;
}

/** A target of a value that evaluations do not have would never be passed. */
void check_targets(const std::vector<MetricTarget>& targets,
                   const std::vector<std::pair<std::string, double>>& measured) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : measured) names.emplace_back(name);
  for (const MetricTarget& target : targets)
    TERCEL_CHECK(std::find(names.begin(), names.end(), target.metric) != names.end(), ConfigError,
                 "solver: targets: the model has no '", printable(target.metric), "'",
                 known_names(target.metric, names));
}

}  // namespace

HeadMetrics::HeadMetrics(std::vector<Head> heads, const MetricOptions& options)
    : heads_(std::move(heads)), options_(options) {
  check_metric_options(options, "solver");
  for (const Head& head : heads_) states_.emplace_back(head, options).columns.push_back(make_all());
  if (!options_.targets.empty()) check_targets(options_.targets, values());
}

HeadMetrics::Metrics HeadMetrics::make_all() const {
  Metrics all;
  for (const std::string& name : options_.metrics) all.push_back(make_metric(name, "metrics"));
  return all;
}

void HeadMetrics::add(Span<Tensor> logits, const Tensor& labels, const RowContext& context) {
  for (size_t h = 0; h < heads_.size(); ++h) {
    State& state = states_[h];
    state.rows.set(logits[h], labels, context);
    const std::vector<HeadRows::Column>& columns = state.rows.columns();
    while (state.columns.size() < columns.size()) state.columns.push_back(make_all());
    for (size_t c = 0; c < columns.size(); ++c) {
      for (const auto& metric : state.columns[c]) {
        const MetricRows* const once = rows_of_all(state.rows, metric->name());
        if (once == nullptr)
          metric->add(columns[c].rows);
        else if (c == 0)
          metric->add(*once);
      }
      state.has_nan |= has_nan(columns[c].rows);
      state.reliability.add(columns[c].rows);
      if (!options_.slice_by.empty()) state.slices.add(columns[c].rows, columns[c].slices);
    }
  }
}

double HeadMetrics::value_of(const State& state, size_t metric) const {
  if (state.has_nan) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0, defined = 0;
  for (const Metrics& column : state.columns) {
    const double value = column[metric]->value();
    if (std::isnan(value)) continue;
    sum += value;
    defined += 1;
  }
  return defined > 0 ? sum / defined : std::numeric_limits<double>::quiet_NaN();
}

/** The metrics of each label of a head of several. */
void HeadMetrics::add_labels(size_t h, std::vector<std::pair<std::string, double>>& out) const {
  const Head& head = heads_[h];
  if (head.kind != LossKind::Columns || head.columns == 1) return;
  const std::vector<Metrics>& columns = states_[h].columns;  // one without rows
  for (size_t c = 0; c < static_cast<size_t>(head.columns); ++c)
    for (size_t m = 0; m < options_.metrics.size(); ++m) {
      const bool is_defined = c < columns.size() && !states_[h].has_nan;
      out.emplace_back(str_cat({options_.metrics[m], "/", head.name, "/", c}),
                       is_defined ? columns[c][m]->value() : std::numeric_limits<double>::quiet_NaN());
    }
}

std::vector<std::pair<std::string, double>> HeadMetrics::values() const {
  std::vector<std::pair<std::string, double>> all;
  const auto ranking = std::find(options_.metrics.begin(), options_.metrics.end(), kRanking);
  const bool several = heads_.size() > 1, ranks = several && ranking != options_.metrics.end();
  if (ranks) all.emplace_back(kRanking, std::numeric_limits<double>::quiet_NaN());
  double weights = 0, sum = 0, shares = 0;
  bool is_undefined = false;  // a head with a logit that is NaN
  for (const Head& head : heads_) weights += head.weight;
  for (size_t h = 0; h < heads_.size(); ++h) {
    const double share = weights > 0 ? heads_[h].weight / weights : 1 / static_cast<double>(heads_.size());
    for (size_t m = 0; m < options_.metrics.size(); ++m) {
      const double value = value_of(states_[h], m);
      const std::string& name = options_.metrics[m];
      all.emplace_back(several ? name + "/" + heads_[h].name : name, value);
      if (share == 0 || name != kRanking) continue;
      is_undefined |= states_[h].has_nan;
      if (!std::isnan(value)) {
        sum += share * value;
        shares += share;
      }
    }
    add_labels(h, all);
  }
  if (ranks && !is_undefined && shares > 0) all[0].second = sum / shares;
  return all;
}

std::vector<HeadDetails> HeadMetrics::details() {
  std::vector<HeadDetails> all;
  for (size_t h = 0; h < heads_.size(); ++h) {
    HeadDetails details{heads_[h].name, states_[h].reliability.bins(kBins), {}};
    if (!options_.slice_by.empty()) details.slices = states_[h].slices.most_frequent(options_.slices);
    all.push_back(std::move(details));
  }
  return all;
}

}  // namespace tercel::recsys
