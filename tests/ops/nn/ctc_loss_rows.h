// Conformance rows of ctc_loss(); see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/nn/ctc_loss.h"
#include "tercel/ops/nn/softmax.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** -log of the probability of all paths that give the target, by enumerating every path. */
inline double ctc_by_paths(const std::vector<double>& log_probs, int64_t time, int64_t classes, int64_t blank,
                           const Sizes& target) {
  double total = 0;
  int64_t paths = 1;
  for (int64_t t = 0; t < time; ++t) paths *= classes;
  for (int64_t path = 0; path < paths; ++path) {
    Sizes spelled;
    double log_prob = 0;
    int64_t rest = path, before = -1;
    for (int64_t t = 0; t < time; ++t) {
      const int64_t label = rest % classes;
      rest /= classes;
      log_prob += log_probs[static_cast<size_t>(t * classes + label)];
      if (label != before && label != blank) spelled.push_back(label);
      before = label;
    }
    if (spelled == target) total += std::exp(log_prob);
  }
  return -std::log(total);
}

inline Row ctc_row(const std::string& name, bool in_a_row, int64_t blank, Reduction reduction) {
  static const std::vector<Sizes> kTargets = {{1, 2, 2}, {2}, {}};
  static const Sizes kTimes = {5, 4, 2};
  constexpr int64_t kTime = 5, kClasses = 4;
  Row row;
  row.name = name;
  row.inputs = {{{kTime, 3, kClasses}}};
  // The gradient is log_softmax's: see ctc_loss().
  row.run = [=](const std::vector<Tensor>& in) {
    const Tensor targets =
        in_a_row ? make({4}, kInt64, {1, 2, 2, 2}) : make({3, 3}, kInt32, {1, 2, 2, 2, 9, 9, 9, 9, 9});
    return ctc_loss(log_softmax(in[0], 2), targets, kTimes, {3, 1, 0}, blank, reduction);
  };
  row.reference = [=](const std::vector<Tensor>& in) {
    const std::vector<double> x = values_of(in[0]);
    std::vector<double> losses;
    for (size_t n = 0; n < 3; ++n) {
      std::vector<double> logs;
      for (size_t t = 0; t < static_cast<size_t>(kTimes[n]); ++t) {
        double sum = 0;
        const double* at = &x[(t * 3 + n) * kClasses];
        for (int64_t c = 0; c < kClasses; ++c) sum += std::exp(at[c]);
        for (int64_t c = 0; c < kClasses; ++c) logs.push_back(at[c] - std::log(sum));
      }
      losses.push_back(ctc_by_paths(logs, kTimes[n], kClasses, blank, kTargets[n]));
    }
    if (reduction == Reduction::None) return make({3}, kFloat64, losses);
    if (reduction == Reduction::Sum) return make({}, kFloat64, {losses[0] + losses[1] + losses[2]});
    return make({}, kFloat64, {(losses[0] / 3 + losses[1] + losses[2]) / 3});
  };
  row.dtypes = {kFloat32, kFloat64};
  row.ulps = 32;
  row.scale = 32;
  row.bitwise = false;
  row.twice_differentiable = false;
  return row;
}

inline std::vector<Row> ctc_rows() {
  return {ctc_row("ctc_loss", false, 0, Reduction::Mean), ctc_row("ctc_loss_in_a_row", true, 0, Reduction::Sum),
          ctc_row("ctc_loss_of_each", false, 3, Reduction::None)};
}

}  // namespace tercel::test
