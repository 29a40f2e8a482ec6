// Conformance rows of gather, take and index_select; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** Walks index in row-major order: visit(place in index, place in x), where x's index in dim comes from `index`. */
template <class Visit>
void walk_index(const Tensor& x, size_t dim, const Tensor& index, Visit visit) {
  const std::vector<double> at = values_of(index);
  const Sizes sizes = index.sizes().to_vector();
  const DimVector strides = contiguous_strides(x.sizes());
  Sizes position(sizes.size(), 0);
  for (size_t i = 0; i < at.size(); ++i) {
    int64_t place = 0;
    for (size_t d = 0; d < sizes.size(); ++d)
      place += strides[d] * (d == dim ? static_cast<int64_t>(at[i]) : position[d]);
    visit(i, static_cast<size_t>(place));
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++position[d] < sizes[d]) break;
      position[d] = 0;
    }
  }
}

inline Row index_row(const std::string& name, std::vector<Input> inputs, Function run, Function reference) {
  Row row;
  row.name = name;
  row.inputs = std::move(inputs);
  row.run = std::move(run);
  row.reference = std::move(reference);
  row.dtypes = number_types();
  row.ulps = 0;
  // Filled-in values are real, and not every reduction is a sum.
  const auto has = [&name](const char* part) { return name.find(part) != std::string::npos; };
  if (!has("fill") && !has("prod") && !has("amax") && !has("amin") && !has("index_reduce")) add_reference_by_parts(row);
  return row;
}

inline Row gather_row(const std::string& name, const Sizes& sizes_of_x, size_t dim, const Sizes& index,
                      ScalarType type) {
  const double high = static_cast<double>(sizes_of_x[dim] - 1);
  return index_row(
      name, {{sizes_of_x}, {index, 0, high, type, false}},
      [dim](const std::vector<Tensor>& in) { return gather(in[0], static_cast<int64_t>(dim), in[1]); },
      [dim](const std::vector<Tensor>& in) {
        const std::vector<double> x = values_of(in[0]);
        std::vector<double> out(static_cast<size_t>(in[1].numel()));
        walk_index(in[0], dim, in[1], [&](size_t i, size_t place) { out[i] = x[place]; });
        return make(in[1].sizes().to_vector(), kFloat64, out);
      });
}

inline Row select_row(const std::string& name, const Sizes& sizes_of_x, size_t dim, int64_t n, ScalarType type) {
  const double high = static_cast<double>(sizes_of_x[dim] - 1);
  return index_row(
      name, {{sizes_of_x}, {{n}, 0, high, type, false}},
      [dim](const std::vector<Tensor>& in) { return index_select(in[0], static_cast<int64_t>(dim), in[1]); },
      [dim](const std::vector<Tensor>& in) {
        Sizes sizes = in[0].sizes().to_vector();
        size_t outer = 1, inner = 1;
        for (size_t d = 0; d < sizes.size(); ++d)
          if (d != dim) (d < dim ? outer : inner) *= static_cast<size_t>(sizes[d]);
        const size_t size = static_cast<size_t>(sizes[dim]);
        const std::vector<double> x = values_of(in[0]), at = values_of(in[1]);
        std::vector<double> out;
        for (size_t o = 0; o < outer; ++o)
          for (const double i : at)
            for (size_t c = 0; c < inner; ++c) out.push_back(x[(o * size + static_cast<size_t>(i)) * inner + c]);
        sizes[dim] = in[1].numel();
        return make(sizes, kFloat64, out);
      });
}

inline std::vector<Row> gather_rows() {
  return {
      select_row("index_select_rows", {7, 11}, 0, 9, kInt64),
      select_row("index_select_columns", {5, 7}, 1, 4, kInt32),
      select_row("index_select_middle", {3, 4, 5}, 1, 6, kInt64),
      gather_row("gather_rows", {6, 5}, 0, {4, 5}, kInt64),
      gather_row("gather_columns", {6, 5}, 1, {6, 9}, kInt32),
      gather_row("gather_part", {4, 5, 6}, 1, {3, 7, 2}, kInt64),
      gather_row("gather_vector", {9}, 0, {20}, kInt64),
      index_row(
          "take", {{{3, 4}}, {{2, 5}, 0, 11, kInt64, false}},
          [](const std::vector<Tensor>& in) { return take(in[0], in[1]); },
          [](const std::vector<Tensor>& in) {
            const std::vector<double> x = values_of(in[0]), at = values_of(in[1]);
            std::vector<double> out;
            for (const double i : at) out.push_back(x[static_cast<size_t>(i)]);
            return make({2, 5}, kFloat64, out);
          }),
      index_row(
          "masked_fill", {{{3, 4}}, {{3, 1}, 0, 1, kBool, false}},
          [](const std::vector<Tensor>& in) { return masked_fill(in[0], in[1], 2); },
          elementwise_reference([](double x, double mask) { return mask != 0 ? 2.0 : x; })),
  };
}

}  // namespace tercel::test
