// Conformance rows of attention; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/nn/attention.h"
#include "tests/ops/nn/matrix_reference.h"

namespace tercel::test {

inline std::vector<Row> attention_rows() {
  using In = const std::vector<Tensor>&;
  using M = const std::vector<Matrix>&;
  std::vector<Row> rows = {
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
  for (Row& row : rows) row.dtypes = {kFloat32, kFloat64};
  return rows;
}

}  // namespace tercel::test
