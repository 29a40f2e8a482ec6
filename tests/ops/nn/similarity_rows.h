// Conformance rows of similarities, gated halves and one-hot rows; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/nn/similarity.h"
#include "tests/ops/nn/matrix_reference.h"

namespace tercel::test {

inline std::vector<Row> similarity_rows() {
  using In = const std::vector<Tensor>&;
  using M = const std::vector<Matrix>&;
  const Sizes sizes{6, 5};
  std::vector<Row> rows = {
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
