// Conformance rows of elementwise losses; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/loss.h"
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

/** A loss whose elements are f(x, target), reduced to the mean. */
template <class F>
Row pair_loss_row(const std::string& name, Input x, Input target, const Function& run, F f) {
  Row row;
  row.name = name;
  const auto count = static_cast<double>(x.sizes[0] * x.sizes[1]);
  row.inputs = {std::move(x), std::move(target)};
  row.run = run;
  row.reference = [f, count](const std::vector<Tensor>& in) {
    double sum = 0;
    for (const double v : values_of(elementwise_reference(f)(in))) sum += v;
    return make({}, kFloat64, {sum / count});
  };
  row.ulps = 16;
  row.scale = 8;
  row.bitwise = false;
  return row;
}

inline std::vector<Row> pair_loss_rows() {
  using In = const std::vector<Tensor>&;
  const Sizes sizes{7, 5};
  const auto log = [](double v) { return std::max(std::log(v), -100.0); };
  return {
      pair_loss_row(
          "l1", {sizes}, {sizes}, [](In in) { return l1_loss(in[0], in[1]); },
          [](double x, double t) { return std::abs(x - t); }),
      pair_loss_row(
          "smooth_l1", {sizes}, {sizes}, [](In in) { return smooth_l1_loss(in[0], in[1], Reduction::Mean, 2); },
          [](double x, double t) {
            const double d = std::abs(x - t);
            return d < 2 ? d * d / 4 : d - 1;
          }),
      pair_loss_row(
          "huber", {sizes}, {sizes}, [](In in) { return huber_loss(in[0], in[1], Reduction::Mean, 1.5); },
          [](double x, double t) {
            const double d = std::abs(x - t);
            return d < 1.5 ? d * d / 2 : 1.5 * (d - 0.75);
          }),
      pair_loss_row(
          "kl_div", {sizes, -4, -0.5}, {sizes, 0.05, 1}, [](In in) { return kl_div(in[0], in[1]); },
          [](double x, double t) { return t * (std::log(t) - x); }),
      pair_loss_row(
          "kl_div_logs", {sizes, -4, -0.5}, {sizes, -3, 0},
          [](In in) { return kl_div(in[0], in[1], Reduction::Mean, true); },
          [](double x, double t) { return std::exp(t) * (t - x); }),
      pair_loss_row(
          "binary_cross_entropy_probabilities", {sizes, 0.05, 0.95}, {sizes, 0, 1},
          [](In in) { return binary_cross_entropy(in[0], in[1]); },
          [log](double x, double t) { return -(t * log(x) + (1 - t) * log(1 - x)); }),
      pair_loss_row(
          "poisson_nll", {sizes, -2, 1}, {sizes, 0, 4}, [](In in) { return poisson_nll_loss(in[0], in[1]); },
          [](double x, double t) { return std::exp(x) - t * x; }),
      pair_loss_row(
          "poisson_nll_full", {sizes, 0.5, 3}, {sizes, 1.5, 4},
          [](In in) { return poisson_nll_loss(in[0], in[1], false, true); },
          [](double x, double t) {
            return x - t * std::log(x + 1e-8) + t * std::log(t) - t + 0.5 * std::log(2 * M_PI * t);
          }),
      pair_loss_row(
          "gaussian_nll", {sizes}, {sizes, 0.2, 2},
          [](In in) {
            return gaussian_nll_loss(in[0], zeros({7, 5}, in[0].dtype()), in[1], true);
          },
          [](double x, double v) { return 0.5 * (std::log(v) + x * x / v + std::log(2 * M_PI)); }),
      pair_loss_row(
          "positive_weight", {sizes}, {sizes, 0, 1},
          [](In in) {
            return binary_cross_entropy_with_logits(in[0], in[1], {}, Reduction::Mean, full({5}, 3, in[0].dtype()));
          },
          [](double x, double y) {
            return (1 - y) * x + (1 + 2 * y) * (std::log1p(std::exp(-std::abs(x))) + std::max(-x, 0.0));
          }),
      pair_loss_row(
          "reduce", {sizes}, {sizes, 0, 1}, [](In in) { return reduce_loss(in[0] * in[1], Reduction::Mean); },
          [](double x, double y) { return x * y; }),
  };
}

inline std::vector<Row> loss_rows() {
  std::vector<Row> rows = pair_loss_rows();
  const std::vector<Row> fused = {
      loss_row("binary_cross_entropy_mean", true, Reduction::Mean, false),
      loss_row("binary_cross_entropy_sum", true, Reduction::Sum, false),
      loss_row("binary_cross_entropy_none", true, Reduction::None, false),
      loss_row("binary_cross_entropy_weighted", true, Reduction::Mean, true),
      loss_row("binary_cross_entropy_weighted_none", true, Reduction::None, true),
      loss_row("mse_mean", false, Reduction::Mean, false),
      loss_row("mse_none", false, Reduction::None, false),
  };
  rows.insert(rows.end(), fused.begin(), fused.end());
  return rows;
}

}  // namespace tercel::test
