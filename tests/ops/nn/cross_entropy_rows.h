// Conformance rows of classification losses; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tercel/ops/nn/cross_entropy.h"
#include "tests/ops/nn/matrix_reference.h"

namespace tercel::test {

inline std::vector<double> log_softmax_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += std::exp(v);
  std::vector<double> out;
  for (const double v : x) out.push_back(v - std::log(sum));
  return out;
}

inline Row multilabel_row(const std::string& name, bool soft) {
  Row row;
  row.name = name;
  row.inputs = {{{3, 4}}};
  if (soft) row.inputs.insert(row.inputs.end(), {{{3, 4}, 0, 1}, {{4}, 0.5, 2, ScalarType::Undefined, false}});
  static const std::vector<std::vector<size_t>> kLabels = {{3, 0}, {}, {1, 2, 0, 3}};
  row.run = [soft](const std::vector<Tensor>& in) {
    if (soft) return multilabel_soft_margin_loss(in[0], in[1], in[2], Reduction::None);
    return multilabel_margin_loss(in[0], make({3, 4}, kInt64, {3, 0, -1, 1, -1, 2, 2, 2, 1, 2, 0, 3}), Reduction::None);
  };
  row.reference = [soft](const std::vector<Tensor>& in) {
    const std::vector<double> x = values_of(in[0]);
    std::vector<double> y, w, losses(3, 0.0);
    if (soft) y = values_of(in[1]), w = values_of(in[2]);
    for (size_t n = 0; n < 3; ++n) {
      const std::vector<size_t>& labels = kLabels[n];
      for (size_t c = 0; c < 4; ++c) {
        const double at = x[n * 4 + c];
        if (soft)
          losses[n] +=
              w[c] * (y[n * 4 + c] * std::log1p(std::exp(-at)) + (1 - y[n * 4 + c]) * std::log1p(std::exp(at))) / 4;
        else if (std::find(labels.begin(), labels.end(), c) == labels.end())
          for (const size_t label : labels) losses[n] += std::max(0.0, 1 - x[n * 4 + label] + at) / 4;
      }
    }
    return make({3}, kFloat64, losses);
  };
  row.ulps = 16;
  row.scale = 16;
  row.bitwise = false;
  return row;
}

inline std::vector<Row> cross_entropy_rows() {
  using In = const std::vector<Tensor>&;
  using M = const std::vector<Matrix>&;
  const Sizes sizes{6, 5};
  const Tensor target = make({6}, kInt64, {0, 4, -100, 2, 2, 1}), all = make({6}, kInt64, {0, 4, 3, 2, 2, 1}),
               weight = make({5}, kFloat64, {1, 2, 0.5, 3, 1.5}), signs = make({6}, kFloat64, {1, -1, 1, 1, -1, -1});
  const std::vector<size_t> classes = {0, 4, 9, 2, 2, 1}, every = {0, 4, 3, 2, 2, 1};
  const std::vector<double> weights = {1, 2, 0.5, 3, 1.5}, sign = {1, -1, 1, 1, -1, -1};
  std::vector<Row> rows = {
      multilabel_row("multilabel_margin_loss", false),
      multilabel_row("multilabel_soft_margin_loss", true),
      rows_row(
          "nll", {{sizes}}, [=](In in) { return nll_loss(in[0], target, {}, Reduction::None); },
          [=](M m, size_t i) { return classes[i] == 9 ? 0 : -m[0][i][classes[i]]; }),
      rows_row(
          "nll_weighted", {{sizes}}, [=](In in) { return nll_loss(in[0], target, weight, Reduction::Mean); },
          // Divided by the sum of the weights used, 1 + 1.5 + 0.5 + 0.5 + 2, instead of 6.
          [=](M m, size_t i) { return classes[i] == 9 ? 0 : -m[0][i][classes[i]] * weights[classes[i]] * 6 / 5.5; },
          true),
      rows_row(
          "cross_entropy", {{sizes}}, [=](In in) { return cross_entropy(in[0], target, weight, Reduction::None); },
          [=](M m, size_t i) {
            return classes[i] == 9 ? 0 : -log_softmax_of(m[0][i])[classes[i]] * weights[classes[i]];
          }),
      rows_row(
          "cross_entropy_smoothed", {{sizes}},
          [=](In in) { return cross_entropy(in[0], all, weight, Reduction::None, -100, 0.2); },
          [=](M m, size_t i) {
            const std::vector<double> logs = log_softmax_of(m[0][i]);
            return -0.8 * logs[every[i]] * weights[every[i]] - 0.2 / 5 * dot(logs, weights);
          }),
      rows_row(
          "cross_entropy_probabilities", {{sizes}, {sizes, 0, 1}},
          [=](In in) { return cross_entropy(in[0], in[1], {}, Reduction::Mean, -100, 0.1); },
          [=](M m, size_t i) {
            std::vector<double> t = m[1][i];
            for (double& v : t) v = 0.9 * v + 0.1 / 5;
            return -dot(log_softmax_of(m[0][i]), t);
          },
          true),
      rows_row(
          "multi_margin", {{sizes}},
          [=](In in) { return multi_margin_loss(in[0], all, 2, 1, weight, Reduction::None); },
          [=](M m, size_t i) {
            double sum = 0;
            for (size_t c = 0; c < 5; ++c)
              if (c != every[i]) sum += std::pow(std::max(0.0, 1 - m[0][i][every[i]] + m[0][i][c]), 2);
            return sum * weights[every[i]] / 5;
          }),
      rows_row(
          "hinge_embedding", {{{6, 1}}},
          [=](In in) {
            return hinge_embedding_loss(in[0], signs.view({6, 1}).to(in[0].dtype()), 1.5);
          },
          [=](M m, size_t i) { return sign[i] > 0 ? m[0][i][0] : std::max(0.0, 1.5 - m[0][i][0]); }, true),
      rows_row(
          "cosine_embedding", {{sizes}, {sizes}},
          [=](In in) { return cosine_embedding_loss(in[0], in[1], signs.to(in[0].dtype()), 0.1, Reduction::None); },
          [=](M m, size_t i) {
            const double c = cosine_of(m[0][i], m[1][i], 1e-12);
            return sign[i] > 0 ? 1 - c : std::max(0.0, c - 0.1);
          }),
      rows_row(
          "margin_ranking", {{{6, 1}}, {{6, 1}}},
          [=](In in) {
            return margin_ranking_loss(in[0], in[1], signs.view({6, 1}).to(in[0].dtype()), 0.5);
          },
          [=](M m, size_t i) { return std::max(0.0, -sign[i] * (m[0][i][0] - m[1][i][0]) + 0.5); }, true),
      rows_row(
          "triplet_margin", {{sizes}, {sizes}, {sizes}},
          [=](In in) { return triplet_margin_loss(in[0], in[1], in[2], 1, 2, 1e-6, true, Reduction::None); },
          [=](M m, size_t i) {
            const double far = std::min(distance_of(m[0][i], m[2][i], 2), distance_of(m[1][i], m[2][i], 2));
            return std::max(0.0, distance_of(m[0][i], m[1][i], 2) - far + 1);
          }),
      rows_row(
          "soft_margin", {{{6, 1}}},
          [=](In in) {
            return soft_margin_loss(in[0], signs.view({6, 1}).to(in[0].dtype()));
          },
          [=](M m, size_t i) { return std::log1p(std::exp(-sign[i] * m[0][i][0])); }, true),
  };
  for (Row& row : rows) row.dtypes = {kFloat32, kFloat64};
  return rows;
}

}  // namespace tercel::test
