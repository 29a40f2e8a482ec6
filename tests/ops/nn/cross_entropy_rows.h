// Conformance rows of classification losses, distances and attention; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tercel/ops/nn/attention.h"
#include "tercel/ops/nn/cross_entropy.h"
#include "tercel/ops/nn/similarity.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** Rows of values, n of d each. */
using Matrix = std::vector<std::vector<double>>;
inline Matrix matrix_of(const Tensor& t) {
  Matrix m;
  const std::vector<double> values = values_of(t);
  const auto d = static_cast<size_t>(t.size(-1));
  for (size_t i = 0; i < values.size(); i += d)
    m.emplace_back(values.begin() + static_cast<int64_t>(i), values.begin() + static_cast<int64_t>(i + d));
  return m;
}
inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
inline double distance_of(const std::vector<double>& a, const std::vector<double>& b, double p) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(std::abs(a[i] - b[i] + 1e-6), p);
  return std::pow(sum, 1 / p);
}
inline double cosine_of(const std::vector<double>& a, const std::vector<double>& b, double eps = 0) {
  return dot(a, b) / std::sqrt((dot(a, a) + eps) * (dot(b, b) + eps));
}
inline std::vector<double> log_softmax_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += std::exp(v);
  std::vector<double> out;
  for (const double v : x) out.push_back(v - std::log(sum));
  return out;
}

/** An op of matrices [n, d] and a reference for their rows, with `cols` numbers per row of the result (0: one). */
template <class F>
Row rows_row(const std::string& name, std::vector<Input> inputs, const Function& run, F of_row, bool mean = false) {
  Row row;
  row.name = name;
  row.inputs = std::move(inputs);
  row.run = run;
  row.reference = [of_row, mean](const std::vector<Tensor>& in) {
    std::vector<Matrix> m;
    for (const Tensor& t : in) m.push_back(matrix_of(t));
    std::vector<double> out;
    for (size_t i = 0; i < m[0].size(); ++i) out.push_back(of_row(m, i));
    if (!mean) return make({static_cast<int64_t>(out.size())}, kFloat64, out);
    double sum = 0;
    for (const double v : out) sum += v;
    return make({}, kFloat64, {sum / static_cast<double>(out.size())});
  };
  row.ulps = 32;
  row.scale = 32;
  row.bitwise = false;
  return row;
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
      rows_row(
          "cosine_similarity", {{sizes}, {sizes}}, [](In in) { return cosine_similarity(in[0], in[1]); },
          [](M m, size_t i) { return cosine_of(m[0][i], m[1][i]); }),
      rows_row(
          "pairwise_distance", {{sizes}, {sizes}}, [](In in) { return pairwise_distance(in[0], in[1], 3); },
          [](M m, size_t i) { return distance_of(m[0][i], m[1][i], 3); }),
      rows_row(
          "normalize", {{sizes}}, [](In in) { return normalize(in[0]).select(1, 2); },
          [](M m, size_t i) { return m[0][i][2] / std::sqrt(dot(m[0][i], m[0][i])); }),
      rows_row(
          "glu", {{{6, 4}}}, [](In in) { return glu(in[0]).select(1, 1); },
          [](M m, size_t i) { return m[0][i][1] / (1 + std::exp(-m[0][i][3])); }),
      rows_row(
          "one_hot", {{{6}, 0, 4, kInt64}}, [](In in) { return one_hot(in[0], 5).select(1, 2); },
          [](M m, size_t) { return m[0][0][0]; }),
      rows_row(
          "attention", {{{6, 4}}, {{7, 4}}, {{7, 3}}},
          [](In in) { return scaled_dot_product_attention(in[0], in[1], in[2], {}, 0, true).select(1, 1); },
          [](M m, size_t i) {
            double sum = 0, out = 0;
            for (size_t j = 0; j <= i; ++j) {
              const double e = std::exp(dot(m[0][i], m[1][j]) / 2);
              sum += e;
              out += e * m[2][j][1];
            }
            return out / sum;
          }),
  };
  for (Row& row : rows) {
    row.dtypes = {kFloat32, kFloat64};
    if (row.name != "one_hot") continue;
    row.dtypes = {kInt64};
    row.differentiable = false;
    row.reference = [](const std::vector<Tensor>& in) {
      std::vector<double> out;
      for (const double v : values_of(in[0])) out.push_back(v == 2 ? 1 : 0);
      return make({6}, kFloat64, out);
    };
  }
  return rows;
}

}  // namespace tercel::test
