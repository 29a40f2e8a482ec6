// What an evaluation measures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tercel/util/export.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/** A value of a metric at which a run ends. */
struct MetricTarget {
  std::string metric;
  double value = 0;

  static constexpr auto fields() {
    return option_list(option_field<&MetricTarget::metric>("metric", "its name", required()),
                       option_field<&MetricTarget::value>("value", "that is to be passed", required()));
  }
  friend bool operator==(const MetricTarget&, const MetricTarget&) = default;
};

/** Metrics of evaluations; part of the section solver. */
struct MetricOptions {
  std::vector<std::string> metrics = {"auc", "log_loss", "accuracy", "calibration"};
  std::vector<MetricTarget> targets;
  std::string group_by;
  std::string slice_by;
  int64_t slices = 20;

  static constexpr auto fields() {
    return option_list(
        option_field<&MetricOptions::metrics>("metrics", "what an evaluation measures, by name"),
        option_field<&MetricOptions::targets>("targets", "values at which the run ends, once all of them are passed"),
        option_field<&MetricOptions::group_by>("group_by",
                                               "slot whose keys are the groups of gauc, hit_rate@K and ndcg@K"),
        option_field<&MetricOptions::slice_by>("slice_by",
                                               "slot whose most frequent keys are evaluated apart; empty: none"),
        option_field<&MetricOptions::slices>("slices", "how many of them", at_least(1), at_most(10000)));
  }
};

/**
 * ConfigError that starts with `owner` for a metric that does not exist or occurs twice, one that needs groups without
 * group_by, and a target that no evaluation can pass: of a metric that is not measured, or of calibration, whose best
 * value is in the middle.
 */
TERCEL_API void check_metric_options(const MetricOptions& options, std::string_view owner);

/**
 * Whether an evaluation's values pass all targets: each is better than its value, not equal to it, as in HugeCTR.
 * False without targets, and for a value that is undefined or missing.
 */
TERCEL_API bool passes_targets(const std::vector<MetricTarget>& targets,
                               const std::vector<std::pair<std::string, double>>& values);

}  // namespace tercel::recsys
