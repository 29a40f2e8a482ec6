// Conformance rows of matrix products; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/linalg/matmul.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** Row-major a [n, k] times b [k, m]; appends the rows of the result to `out`. */
inline void append_product(std::vector<double>& out, const double* a, const double* b, size_t n, size_t k, size_t m) {
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < m; ++j) {
      double sum = 0;
      for (size_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * m + j];
      out.push_back(sum);
    }
  }
}

/** Products of the matrices in a's and b's last two dimensions; a single matrix is broadcast to the batch. */
inline Tensor matmul_reference(const Tensor& a, const Tensor& b, const Sizes& sizes) {
  const bool vector_a = a.dim() == 1, vector_b = b.dim() == 1;
  const size_t k = static_cast<size_t>(a.size(-1));
  const size_t n = vector_a ? 1 : static_cast<size_t>(a.size(-2)), m = vector_b ? 1 : static_cast<size_t>(b.size(-1));
  const std::vector<double> left = values_of(a), right = values_of(b);
  const size_t batch_a = left.size() / (n * k), batch_b = right.size() / (k * m);
  std::vector<double> out;
  for (size_t i = 0; i < std::max(batch_a, batch_b); ++i)
    append_product(out, left.data() + i % batch_a * n * k, right.data() + i % batch_b * k * m, n, k, m);
  return make(sizes, kFloat64, out);
}

/** Sums of k products of numbers up to `largest`. */
inline void allow_for_products(Row& row, int64_t k, double largest = 3) {
  row.dtypes = {kFloat32, kFloat64};
  row.scale = static_cast<double>(k) * largest * largest;
  row.bitwise = false;
}

inline Row matmul_row(const std::string& name, const Sizes& a, const Sizes& b, const Sizes& out, Function run) {
  Row row;
  row.name = name;
  row.inputs = {{a}, {b}};
  row.run = std::move(run);
  row.reference = [out](const std::vector<Tensor>& in) { return matmul_reference(in[0], in[1], out); };
  allow_for_products(row, a.back());
  row.dtypes = number_types();
  return row;
}

/**
 * beta x + alpha times the product of a [.., n, k] and b [.., k, m] with beta = 0.5, alpha = 2; x is broadcast to
 * `out`. Batches are summed if `out` has no batch dimension.
 */
inline Row add_row(const std::string& name, const Sizes& x, const Sizes& a, const Sizes& b, const Sizes& out,
                   Function run, std::function<void(const std::vector<Tensor>&)> inplace,
                   std::function<void(const Tensor&, const std::vector<Tensor>&)> out_variants) {
  Row row;
  row.name = name;
  row.inputs = {{x}, {a}, {b}};
  row.run = std::move(run);
  row.inplace = std::move(inplace);
  row.out = std::move(out_variants);
  row.reference = [a, b, out](const std::vector<Tensor>& in) {
    // A vector is a column on the right; if both operands are vectors, a row on the left.
    Tensor left = in[1], right = in[2];
    Sizes shape = out;
    if (a.size() == 1) left = make({a[0], 1}, kFloat64, values_of(left));
    if (b.size() == 1) right = make(a.size() == 1 ? Sizes{1, b[0]} : Sizes{b[0], 1}, kFloat64, values_of(right));
    if (b.size() == 1 && a.size() == 2) shape.push_back(1);
    if (a.size() == 3 && out.size() == 2) shape.insert(shape.begin(), a[0]);
    const std::vector<double> product = values_of(matmul_reference(left, right, shape)), x_values = values_of(in[0]);
    std::vector<double> values(static_cast<size_t>(numel_of(out)), 0.0);
    for (size_t i = 0; i < product.size(); ++i) values[i % values.size()] += 2 * product[i];
    for (size_t i = 0; i < values.size(); ++i) values[i] += 0.5 * x_values[i % x_values.size()];
    return make(out, kFloat64, values);
  };
  allow_for_products(row, 2 * 7 * 3);
  return row;
}

#define TERCEL_ADD_ROW(row, name, ...)                                                                    \
  add_row(                                                                                                \
      #row, __VA_ARGS__, [](const std::vector<Tensor>& in) { return name(in[0], in[1], in[2], 0.5, 2); }, \
      [](const std::vector<Tensor>& in) { name##_(in[0], in[1], in[2], 0.5, 2); },                        \
      [](const Tensor& out, const std::vector<Tensor>& in) { name##_out(out, in[0], in[1], in[2], 0.5, 2); })

/** Every op of this family, with summands of several sizes. */
inline std::vector<Row> add_product_rows() {
  using M = Sizes;
  return {
      TERCEL_ADD_ROW(addmm, addmm, M{5, 3}, M{5, 7}, M{7, 3}, M{5, 3}),
      TERCEL_ADD_ROW(addmm_row, addmm, M{3}, M{5, 7}, M{7, 3}, M{5, 3}),
      TERCEL_ADD_ROW(addmm_number, addmm, M{}, M{5, 7}, M{7, 3}, M{5, 3}),
      TERCEL_ADD_ROW(addmv, addmv, M{5}, M{5, 7}, M{7}, M{5}),
      TERCEL_ADD_ROW(addr, addr, M{5, 3}, M{5}, M{3}, M{5, 3}),
      TERCEL_ADD_ROW(baddbmm, baddbmm, M{2, 5, 3}, M{2, 5, 7}, M{2, 7, 3}, M{2, 5, 3}),
      TERCEL_ADD_ROW(baddbmm_matrix, baddbmm, M{5, 3}, M{2, 5, 7}, M{2, 7, 3}, M{2, 5, 3}),
      TERCEL_ADD_ROW(addbmm, addbmm, M{5, 3}, M{2, 5, 7}, M{2, 7, 3}, M{5, 3}),
  };
}
#undef TERCEL_ADD_ROW

/** x + a b with a row x, which is fused into the product. */
inline Row bias_row() {
  Row row;
  row.name = "addmm_bias";
  row.inputs = {{{3}}, {{5, 7}}, {{7, 3}}};
  row.run = [](const std::vector<Tensor>& in) { return addmm(in[0], in[1], in[2]); };
  row.reference = [](const std::vector<Tensor>& in) {
    std::vector<double> values = values_of(matmul_reference(in[1], in[2], {5, 3}));
    const std::vector<double> x = values_of(in[0]);
    for (size_t i = 0; i < values.size(); ++i) values[i] += x[i % 3];
    return make({5, 3}, kFloat64, values);
  };
  allow_for_products(row, 7);
  return row;
}

inline std::vector<Row> matmul_rows() {
  using Tensors = std::vector<Tensor>;
  const Function mm_run = [](const Tensors& in) { return mm(in[0], in[1]); };
  const Function bmm_run = [](const Tensors& in) { return bmm(in[0], in[1]); };
  const Function matmul_run = [](const Tensors& in) { return matmul(in[0], in[1]); };
  std::vector<Row> rows = {
      matmul_row("mm_small", {5, 7}, {7, 3}, {5, 3}, mm_run),
      matmul_row("mm", {37, 65}, {65, 50}, {37, 50}, mm_run),
      matmul_row("mm_one_column", {9, 40}, {40, 1}, {9, 1}, mm_run),
      matmul_row("mm_one_row", {1, 40}, {40, 9}, {1, 9}, mm_run),
      matmul_row("mm_outer", {6, 1}, {1, 8}, {6, 8}, mm_run),
      matmul_row("bmm", {3, 5, 7}, {3, 7, 4}, {3, 5, 4}, bmm_run),
      matmul_row("bmm_of_one", {1, 9, 33}, {1, 33, 20}, {1, 9, 20}, bmm_run),
      bias_row(),
      matmul_row("matmul_vectors", {19}, {19}, {}, matmul_run),
      matmul_row("matmul_matrix_vector", {6, 19}, {19}, {6}, matmul_run),
      matmul_row("matmul_vector_matrix", {19}, {19, 6}, {6}, matmul_run),
      matmul_row("matmul_matrices", {6, 19}, {19, 5}, {6, 5}, matmul_run),
      matmul_row("matmul_rows_matrix", {2, 3, 7}, {7, 4}, {2, 3, 4}, matmul_run),
      matmul_row("matmul_batches", {2, 3, 4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}, matmul_run),
      matmul_row("matmul_broadcast", {1, 4, 5}, {3, 5, 6}, {3, 4, 6}, matmul_run),
      matmul_row("matmul_matrix_batches", {4, 5}, {3, 5, 6}, {3, 4, 6}, matmul_run),
      matmul_row("matmul_vector_batches", {5}, {3, 5, 6}, {3, 6}, matmul_run),
      matmul_row("matmul_batches_vector", {3, 4, 5}, {5}, {3, 4}, matmul_run),
  };
  for (Row& row : rows) {
    if (row.name == "mm") row.gradient_sizes = {{4, 9}, {9, 5}};
    if (row.name.rfind("mm", 0) == 0) row.out = [](const Tensor& out, const Tensors& in) { mm_out(out, in[0], in[1]); };
    if (row.name == "bmm") row.out = [](const Tensor& out, const Tensors& in) { bmm_out(out, in[0], in[1]); };
    if (row.name == "matmul_batches")
      row.out = [](const Tensor& out, const Tensors& in) { matmul_out(out, in[0], in[1]); };
  }
  for (Row& row : add_product_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tercel::test
