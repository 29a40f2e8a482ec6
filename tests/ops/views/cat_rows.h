// Conformance rows of concatenation and splitting; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/views/cat.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** Row-major elements of tensors joined along a dimension. */
inline Tensor cat_reference(const std::vector<Tensor>& in, size_t dim) {
  Sizes sizes = in[0].sizes().to_vector();
  size_t outer = 1;
  for (size_t d = 0; d < dim; ++d) outer *= static_cast<size_t>(sizes[d]);
  sizes[dim] = 0;
  std::vector<std::vector<double>> parts;
  for (const Tensor& t : in) {
    sizes[dim] += t.sizes()[dim];
    parts.push_back(values_of(t));
  }
  std::vector<double> out;
  for (size_t o = 0; o < outer; ++o)
    for (const std::vector<double>& part : parts) {
      const auto run = static_cast<std::ptrdiff_t>(part.size() / outer);
      const auto first = part.begin() + static_cast<std::ptrdiff_t>(o) * run;
      out.insert(out.end(), first, first + run);
    }
  return make(sizes, kFloat64, out);
}

inline Row cat_row(const std::string& name, const std::vector<Sizes>& sizes, Function run, Function reference) {
  Row row;
  row.name = name;
  for (const Sizes& s : sizes) row.inputs.push_back({s});
  row.run = std::move(run);
  row.reference = std::move(reference);
  row.dtypes = all_types();
  row.ulps = 0;
  add_reference_by_parts(row);
  return row;
}

inline std::vector<Row> cat_rows() {
  using Tensors = std::vector<Tensor>;
  const auto cat_along = [](int64_t dim) { return [dim](const Tensors& in) { return cat(in, dim); }; };
  const auto stacked = [](const std::vector<Sizes>& sizes, size_t dim) {
    return [sizes, dim](const Tensors& in) {
      Tensors parts;
      for (size_t i = 0; i < in.size(); ++i) parts.push_back(make(sizes[i], kFloat64, values_of(in[i])));
      return cat_reference(parts, dim);
    };
  };
  const auto reference = [](size_t dim) { return [dim](const Tensors& in) { return cat_reference(in, dim); }; };
  std::vector<Row> rows = {
      cat_row("cat_rows", {{2, 5}, {1, 5}, {4, 5}}, cat_along(0), reference(0)),
      cat_row("cat_columns", {{6, 5}, {6, 16}, {6, 1}}, cat_along(-1), reference(1)),
      cat_row("cat_middle", {{3, 2, 4}, {3, 5, 4}}, cat_along(1), reference(1)),
      cat_row("cat_of_ones", {{1, 1, 5}, {1, 3, 5}, {1, 1, 5}}, cat_along(1), reference(1)),
      cat_row("cat_of_single_elements", {{1, 1}, {1, 1}}, cat_along(0), reference(0)),
      cat_row(
          "stack_of_ones", {{1, 3, 1}, {1, 3, 1}}, [](const Tensors& in) { return stack(in, 0); },
          stacked({{1, 1, 3, 1}, {1, 1, 3, 1}}, 0)),
      cat_row(
          "block_diag_of_ones", {{1, 3}, {2, 1}, {1, 1}}, [](const Tensors& in) { return block_diag(in); },
          [](const Tensors& in) {
            const std::vector<double> a = values_of(in[0]), b = values_of(in[1]), c = values_of(in[2]);
            return make({4, 5}, kFloat64, {a[0], a[1], a[2], 0,    0, 0, 0, 0, b[0], 0,  //
                                           0,    0,    0,    b[1], 0, 0, 0, 0, 0,    c[0]});
          }),
      cat_row(
          "stack", {{3, 7}, {3, 7}}, [](const Tensors& in) { return stack(in, 1); },
          [](const Tensors& in) {
            Tensors parts;
            for (const Tensor& t : in) parts.push_back(make({3, 1, 7}, kFloat64, values_of(t)));
            return cat_reference(parts, 1);
          }),
      cat_row(
          "concat", {{2, 3}, {1, 3}}, [](const Tensors& in) { return concat(in); }, reference(0)),
      cat_row(
          "concatenate", {{2, 3}, {2, 1}}, [](const Tensors& in) { return concatenate(in, 1); }, reference(1)),
      cat_row(
          "hstack", {{2, 3, 2}, {2, 1, 2}}, [](const Tensors& in) { return hstack(in); }, reference(1)),
      cat_row(
          "hstack_vectors", {{2}, {3}}, [](const Tensors& in) { return hstack(in); }, reference(0)),
      cat_row(
          "vstack", {{3}, {2, 3}}, [](const Tensors& in) { return vstack(in); }, stacked({{1, 3}, {2, 3}}, 0)),
      cat_row(
          "row_stack", {{3}, {3}}, [](const Tensors& in) { return row_stack(in); }, stacked({{1, 3}, {1, 3}}, 0)),
      cat_row(
          "dstack", {{3}, {1, 3, 2}}, [](const Tensors& in) { return dstack(in); }, stacked({{1, 3, 1}, {1, 3, 2}}, 2)),
      cat_row(
          "column_stack", {{3}, {3, 2}}, [](const Tensors& in) { return column_stack(in); },
          stacked({{3, 1}, {3, 2}}, 1)),
      cat_row(
          "block_diag", {{2, 3}, {2}, {}}, [](const Tensors& in) { return block_diag(in); },
          [](const Tensors& in) {
            const std::vector<double> a = values_of(in[0]), b = values_of(in[1]), c = values_of(in[2]);
            return make({4, 6}, kFloat64, {a[0], a[1], a[2], 0,    0,    0, a[3], a[4], a[5], 0, 0, 0,  //
                                           0,    0,    0,    b[0], b[1], 0, 0,    0,    0,    0, 0, c[0]});
          }),
      // The last piece.
      cat_row(
          "split_with_sizes_copy", {{3, 2}},
          [](const Tensors& in) {
            return split_with_sizes_copy(in[0], {1, 2})[1];
          },
          [](const Tensors& in) {
            const std::vector<double> x = values_of(in[0]);
            return make({2, 2}, kFloat64, {x[2], x[3], x[4], x[5]});
          }),
      // All pieces except the first, concatenated again.
      cat_row(
          "split_copy", {{4, 9}},
          [](const Tensors& in) {
            const Tensors pieces = split_copy(in[0], {2, 4, 3}, 1);
            return cat({pieces[2], pieces[1]}, 1);
          },
          [](const Tensors& in) {
            const std::vector<double> x = values_of(in[0]);
            std::vector<double> out;
            for (size_t r = 0; r < 4; ++r)
              for (const size_t c : {6, 7, 8, 2, 3, 4, 5}) out.push_back(x[r * 9 + c]);
            return make({4, 7}, kFloat64, out);
          }),
  };
  rows[0].out = [](const Tensor& out, const Tensors& in) { cat_out(out, in, 0); };
  rows[1].out = [](const Tensor& out, const Tensors& in) { cat_out(out, in, -1); };
  return rows;
}

}  // namespace tercel::test
