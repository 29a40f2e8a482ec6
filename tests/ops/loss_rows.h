// What losses are held to; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/loss.h"
#include "tests/ops/rows.h"

namespace tercel::test {

inline double cross_entropy(double x, double y) {
  return std::max(x, 0.0) - x * y + std::log1p(std::exp(-std::abs(x)));
}

inline Row loss_row(const std::string& name, bool entropy, Reduction reduction, bool weighted) {
  Row row;
  row.name = name;
  row.inputs = {{{7, 5}, -6, 6}, {{7, 5}, 0, 1}};
  if (weighted) row.inputs.push_back({{7, 1}, 0.5, 2, ScalarType::Undefined, false});
  row.run = [entropy, reduction](const std::vector<Tensor>& in) {
    if (!entropy) return mse_loss(in[0], in[1], reduction);
    return binary_cross_entropy_with_logits(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), reduction);
  };
  row.reference = [entropy, reduction](const std::vector<Tensor>& in) {
    const std::vector<double> x = values_of(in[0]), y = values_of(in[1]);
    std::vector<double> weight(7, 1), losses;
    if (in.size() > 2) weight = values_of(in[2]);
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      losses.push_back(weight[i / 5] * (entropy ? cross_entropy(x[i], y[i]) : (x[i] - y[i]) * (x[i] - y[i])));
      sum += losses.back();
    }
    if (reduction == Reduction::None) return make({7, 5}, kFloat64, losses);
    return make({}, kFloat64, {reduction == Reduction::Mean ? sum / 35 : sum});
  };
  row.ulps = 8;
  row.scale = 4;
  return row;
}

inline std::vector<Row> loss_rows() {
  return {
      loss_row("binary_cross_entropy_mean", true, Reduction::Mean, false),
      loss_row("binary_cross_entropy_sum", true, Reduction::Sum, false),
      loss_row("binary_cross_entropy_none", true, Reduction::None, false),
      loss_row("binary_cross_entropy_weighted", true, Reduction::Mean, true),
      loss_row("binary_cross_entropy_weighted_none", true, Reduction::None, true),
      loss_row("mse_mean", false, Reduction::Mean, false),
      loss_row("mse_none", false, Reduction::None, false),
  };
}

}  // namespace tercel::test
