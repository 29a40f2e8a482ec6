#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "tercel/recsys/metrics/accuracy.h"
#include "tercel/recsys/metrics/auc.h"
#include "tercel/recsys/metrics/average_loss.h"
#include "tercel/recsys/metrics/calibration.h"
#include "tercel/recsys/metrics/error_means.h"
#include "tercel/recsys/metrics/grouped.h"
#include "tercel/recsys/metrics/log_loss.h"
#include "tercel/recsys/metrics/metric.h"
#include "tercel/recsys/metrics/metric_options.h"
#include "tercel/recsys/metrics/ndcg.h"
#include "tercel/recsys/metrics/precision.h"
#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/checksum.h"
#include "tercel/util/cursor.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/suggest.h"

namespace tercel::recsys {

namespace {

struct MetricEntry {
  std::string_view name;
  std::unique_ptr<Metric> (*make)(double parameter);
};

template <class M>
std::unique_ptr<Metric> make(double /*parameter*/) {
  return std::make_unique<M>();
}
/** Of metrics with a number behind '@': "@K" an integer, "@P" any. */
template <class M>
std::unique_ptr<Metric> make_top(double top) {
  return std::make_unique<M>(static_cast<int64_t>(top));
}
std::unique_ptr<Metric> make_precision(double threshold) { return std::make_unique<Precision>(threshold); }

constexpr MetricEntry kMetrics[] = {
    {"auc", &make<Auc>},
    {"gauc", &make<GroupAuc>},
    {"log_loss", &make<LogLoss>},
    {"ne", &make<NormalizedEntropy>},
    {"accuracy", &make<Accuracy>},
    {"calibration", &make<Calibration>},
    {"average_loss", &make<AverageLoss>},
    {"hit_rate@K", &make_top<HitRateAt>},
    {"ndcg@K", &make_top<NdcgAt>},
    {"ndcg", &make<Ndcg>},
    {"precision@P", &make_precision},
    {"smape", &make<Smape>},
    {"mae", &make<MeanAbsoluteError>},
    {"rmse", &make<RootMeanSquaredError>},
};

constexpr auto list_names() {
  std::array<std::string_view, std::size(kMetrics)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kMetrics[i].name;
  return names;
}
constexpr auto kNames = list_names();

/** The number behind '@', of a name that begins like that of the entry; false if there is none. */
bool parse_parameter(std::string_view name, std::string_view entry, double& parameter) {
  const size_t at = entry.find('@') + 1;
  if (name.size() <= at || name.substr(0, at) != entry.substr(0, at)) return false;
  const char* const end = name.data() + name.size();
  if (entry.ends_with('K')) {
    int32_t number = 0;
    const auto result = std::from_chars(name.data() + at, end, number);
    parameter = number;
    return result.ec == std::errc() && result.ptr == end;
  }
  const auto result = std::from_chars(name.data() + at, end, parameter);
  return result.ec == std::errc() && result.ptr == end && std::isfinite(parameter);
}

}  // namespace

Metric::~Metric() = default;

void Metric::add(const MetricRows& rows) {
  const size_t count = rows.logits.size();
  TERCEL_CHECK(rows.labels.size() == count, ValueError, name(), ": ", count, " logits for ", rows.labels.size(),
               " labels");
  TERCEL_CHECK(rows.weights.empty() || rows.weights.size() == count, ValueError, name(), ": ", count, " logits for ",
               rows.weights.size(), " weights");
  TERCEL_CHECK(!needs_groups() || rows.groups.size() == count, ValueError, name(), ": ", count, " logits for ",
               rows.groups.size(), " groups");
  size_t zeros = 0;
  for (const float weight : rows.weights) {
    TERCEL_CHECK(std::isfinite(weight) && weight >= 0, ValueError, name(),
                 ": expected finite weights that are not negative, found ", static_cast<double>(weight));
    if (weight == 0) ++zeros;
  }
  if (zeros == 0) return add_rows(rows);
  // See Note [Weights of rows].
  std::vector<float> logits, labels, weights;
  std::vector<int64_t> groups;
  for (size_t i = 0; i < count; ++i) {
    if (rows.weights[i] == 0) continue;
    logits.push_back(rows.logits[i]);
    labels.push_back(rows.labels[i]);
    weights.push_back(rows.weights[i]);
    if (!rows.groups.empty()) groups.push_back(rows.groups[i]);
  }
  if (!logits.empty()) add_rows({logits, labels, weights, groups});
}

std::string Metric::state() const {
  std::string bytes;
  put(bytes, static_cast<uint64_t>(name().size()));
  bytes += name();
  write_state(bytes);
  put(bytes, checksum(bytes.data(), bytes.size()));
  return bytes;
}

void Metric::merge(std::string_view state) {
  const std::string place = "state of metric '" + std::string(name()) + "'";
  ByteCursor whole(state, {place});
  const size_t size = state.size() < sizeof(uint64_t) ? 0 : state.size() - sizeof(uint64_t);
  ByteCursor bytes = whole.sub(size, "content");
  if (const auto sum = whole.read<uint64_t>("checksum"); sum != checksum(state.data(), size))
    whole.fail_at(static_cast<int64_t>(size), "the checksum " + checksum_to_hex(checksum(state.data(), size)),
                  checksum_to_hex(sum));
  const std::string_view found =
      bytes.text(bytes.check_count(bytes.read<uint64_t>("length of the name"), 1, "name"), "name");
  if (found != name())
    bytes.fail_at(sizeof(uint64_t), str_cat({"the state of '", name(), "'"}), str_cat({"'", printable(found), "'"}));
  merge_state(bytes);
}

Span<std::string_view> metric_names() { return kNames; }

std::unique_ptr<Metric> make_metric(std::string_view name, std::string_view owner) {
  for (const MetricEntry& entry : kMetrics) {
    double parameter = 0;
    const bool has_parameter = entry.name.find('@') != std::string_view::npos;
    if (has_parameter ? parse_parameter(name, entry.name, parameter) : name == entry.name) return entry.make(parameter);
  }
  throw_error<ConfigError>({owner, ": unknown metric '", printable(name), "'", known_names(name, kNames)});
}

void check_metric_options(const MetricOptions& options, std::string_view owner) {
  TERCEL_CHECK(!options.metrics.empty(), ConfigError, owner, ": metrics: expected at least one name, found none");
  std::set<std::string> names;
  for (const std::string& name : options.metrics) {
    const auto metric = make_metric(name, owner);
    TERCEL_CHECK(names.insert(std::string(metric->name())).second, ConfigError, owner, ": metric '", metric->name(),
                 "' occurs twice");
    TERCEL_CHECK(!metric->needs_groups() || !options.group_by.empty(), ConfigError, owner, ": metric '", metric->name(),
                 "' needs group_by, the slot whose keys are the groups");
  }
  for (const MetricTarget& target : options.targets) {
    const std::string name = target.metric.substr(0, target.metric.find('/'));
    const auto metric = make_metric(name, str_cat({owner, ": targets"}));
    TERCEL_CHECK(names.contains(std::string(metric->name())), ConfigError, owner, ": targets: '", name,
                 "' is not among the metrics that are measured");
    TERCEL_CHECK(metric->better() != Better::NearOne, ConfigError, owner, ": targets: '", name,
                 "' has no direction in which it becomes better: it is best at 1");
    TERCEL_CHECK(std::isfinite(target.value), ConfigError, owner, ": targets: ", name,
                 ": expected a finite number, found ", target.value);
  }
}

bool passes_targets(const std::vector<MetricTarget>& targets,
                    const std::vector<std::pair<std::string, double>>& values) {
  return !targets.empty() && std::all_of(targets.begin(), targets.end(), [&](const MetricTarget& target) {
    const bool higher =
        make_metric(target.metric.substr(0, target.metric.find('/')), "targets")->better() == Better::Higher;
    return std::any_of(values.begin(), values.end(), [&](const std::pair<std::string, double>& value) {
      return value.first == target.metric && (higher ? value.second > target.value : value.second < target.value);
    });
  });
}

}  // namespace tercel::recsys
