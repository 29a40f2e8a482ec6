// Conformance rows of diagonals and triangles; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/views/diagonals.h"
#include "tests/ops/views/views_rows.h"

namespace tercel::test {

/** A row of an op of one matrix [4, 6] whose element (i, j) of the result is value(matrix, i, j), of the given sizes.
 */
template <class Value>
Row matrix_row(const std::string& name, const Sizes& in, const Sizes& out, Function run, Value value) {
  Row row;
  row.name = name;
  row.inputs = {{in}};
  row.run = std::move(run);
  row.reference = [in, out, value](const std::vector<Tensor>& tensors) {
    const std::vector<double> x = values_of(tensors[0]);
    const auto at = [&](int64_t i, int64_t j) {
      return x[static_cast<size_t>(in.size() == 1 ? i : i * in.back() + j)];
    };
    std::vector<double> values;
    const int64_t rows = out.size() == 2 ? out[0] : 1, columns = out.empty() ? 1 : out.back();
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) values.push_back(value(at, i, j));
    return make(out, kFloat64, values);
  };
  row.dtypes = number_types();
  return row;
}

inline std::vector<Row> diagonals_rows() {
  using Tensors = std::vector<Tensor>;
  std::vector<Row> rows = {
      view_row(
          "diagflat", {2, 2}, {4, 4}, [](const Tensors& in) { return diagflat(in[0]); },
          [](const Sizes& i) -> Sizes {
            if (i[0] != i[1]) return {};
            return {i[0] / 2, i[0] % 2};
          }),
      matrix_row(
          "diagonal", {4, 6}, {4}, [](const Tensors& in) { return diagonal(in[0]); },
          [](auto at, int64_t, int64_t j) { return at(j, j); }),
      matrix_row(
          "diagonal_above", {4, 6}, {3}, [](const Tensors& in) { return diagonal(in[0], 3); },
          [](auto at, int64_t, int64_t j) { return at(j, j + 3); }),
      matrix_row(
          "diagonal_below", {4, 6}, {2}, [](const Tensors& in) { return diagonal(in[0], -2); },
          [](auto at, int64_t, int64_t j) { return at(j + 2, j); }),
      matrix_row(
          "diagonal_turned", {4, 6}, {4}, [](const Tensors& in) { return diagonal(in[0], -1, 1, 0); },
          [](auto at, int64_t, int64_t j) { return at(j, j + 1); }),
      matrix_row(
          "diag_matrix", {5, 3}, {3}, [](const Tensors& in) { return diag(in[0]); },
          [](auto at, int64_t, int64_t j) { return at(j, j); }),
      matrix_row(
          "diag_vector", {3}, {4, 4}, [](const Tensors& in) { return diag(in[0], 1); },
          [](auto at, int64_t i, int64_t j) { return j == i + 1 ? at(i, 0) : 0.0; }),
      matrix_row(
          "diag_embed", {3}, {4, 4}, [](const Tensors& in) { return diag_embed(in[0], -1); },
          [](auto at, int64_t i, int64_t j) { return i == j + 1 ? at(j, 0) : 0.0; }),
      matrix_row(
          "tril", {4, 6}, {4, 6}, [](const Tensors& in) { return tril(in[0], 1); },
          [](auto at, int64_t i, int64_t j) { return j <= i + 1 ? at(i, j) : 0.0; }),
      matrix_row(
          "triu", {6, 4}, {6, 4}, [](const Tensors& in) { return triu(in[0], -1); },
          [](auto at, int64_t i, int64_t j) { return j >= i - 1 ? at(i, j) : 0.0; }),
      matrix_row(
          "fill_diagonal_", {7, 3}, {7, 3},
          [](const Tensors& in) {
            Tensor x = clone(in[0]);
            fill_diagonal_(x, 2, true);
            return x;
          },
          [](auto at, int64_t i, int64_t j) { return i % 4 == j ? 2.0 : at(i, j); }),
      matrix_row(
          "trace", {4, 4}, {}, [](const Tensors& in) { return trace(in[0]); },
          [](auto at, int64_t, int64_t) { return at(0, 0) + at(1, 1) + at(2, 2) + at(3, 3); }),
  };
  for (Row& row : rows) {
    if (row.name == "tril") {
      row.inplace = [](const Tensors& in) { tril_(in[0], 1); };
      row.out = [](const Tensor& out, const Tensors& in) { tril_out(out, in[0], 1); };
    }
    if (row.name == "triu") {
      row.inplace = [](const Tensors& in) { triu_(in[0], -1); };
      row.out = [](const Tensor& out, const Tensors& in) { triu_out(out, in[0], -1); };
    }
    if (row.name == "fill_diagonal_") row.inplace = [](const Tensors& in) { fill_diagonal_(in[0], 2, true); };
    if (row.name == "trace") row.scale = 12;
  }
  return rows;
}

}  // namespace tercel::test
