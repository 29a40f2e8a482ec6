// What joining is held to; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/join.h"
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

inline Row join_row(const std::string& name, const std::vector<Sizes>& sizes, Function run, Function reference) {
  Row row;
  row.name = name;
  for (const Sizes& s : sizes) row.inputs.push_back({s});
  row.run = std::move(run);
  row.reference = std::move(reference);
  row.dtypes = all_types();
  row.ulps = 0;
  return row;
}

inline std::vector<Row> join_rows() {
  using Tensors = std::vector<Tensor>;
  const auto cat_along = [](int64_t dim) { return [dim](const Tensors& in) { return cat(in, dim); }; };
  const auto reference = [](size_t dim) { return [dim](const Tensors& in) { return cat_reference(in, dim); }; };
  return {
      join_row("cat_rows", {{2, 5}, {1, 5}, {4, 5}}, cat_along(0), reference(0)),
      join_row("cat_columns", {{6, 5}, {6, 16}, {6, 1}}, cat_along(-1), reference(1)),
      join_row("cat_middle", {{3, 2, 4}, {3, 5, 4}}, cat_along(1), reference(1)),
      join_row(
          "stack", {{3, 7}, {3, 7}}, [](const Tensors& in) { return stack(in, 1); },
          [](const Tensors& in) {
            Tensors rows;
            for (const Tensor& t : in) rows.push_back(make({3, 1, 7}, kFloat64, values_of(t)));
            return cat_reference(rows, 1);
          }),
      // Every piece but the first, side by side again.
      join_row(
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
}

}  // namespace tercel::test
