// Conformance rows of view scatter ops; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/views/view_scatter.h"
#include "tests/ops/views/views_rows.h"

namespace tercel::test {

/** x with some elements from src: `from` returns an index into src, or none where x is unchanged. */
inline Row replaced_row(const std::string& name, const Sizes& x, const Sizes& src, Function run, const IndexMap& from) {
  Row row;
  row.name = name;
  row.inputs = {{x}, {src}};
  row.run = std::move(run);
  row.reference = [x, from](const std::vector<Tensor>& in) {
    std::vector<double> out = values_of(in[0]);
    const std::vector<double> source = values_of(in[1]);
    const DimVector strides = contiguous_strides(in[1].sizes());
    Sizes index(x.size(), 0);
    for (double& value : out) {
      const Sizes place = from(index);
      if (!place.empty()) {
        int64_t at = 0;
        for (size_t d = 0; d < place.size(); ++d) at += place[d] * strides[d];
        value = source[static_cast<size_t>(at)];
      }
      for (size_t d = x.size(); d-- > 0 && ++index[d] == x[d];) index[d] = 0;
    }
    return make(x, kFloat64, out);
  };
  row.dtypes = all_types();
  row.ulps = 0;
  return row;
}

inline std::vector<Row> view_scatter_rows() {
  using Tensors = std::vector<Tensor>;
  return {
      replaced_row(
          "select_scatter", {4, 5}, {4}, [](const Tensors& in) { return select_scatter(in[0], in[1], 1, -2); },
          [](const Sizes& i) -> Sizes {
            if (!(i[1] == 3)) return {};
            return {i[0]};
          }),
      replaced_row(
          "slice_scatter", {7, 3}, {3, 3}, [](const Tensors& in) { return slice_scatter(in[0], in[1], 0, 1, 6, 2); },
          [](const Sizes& i) -> Sizes {
            if (!(i[0] % 2 == 1 && i[0] < 6)) return {};
            return {(i[0] - 1) / 2, i[1]};
          }),
      replaced_row(
          "diagonal_scatter", {4, 5}, {3}, [](const Tensors& in) { return diagonal_scatter(in[0], in[1], -1); },
          [](const Sizes& i) -> Sizes {
            if (!(i[0] == i[1] + 1)) return {};
            return {i[1]};
          }),
      replaced_row(
          "as_strided_scatter", {4, 6}, {3, 2},
          [](const Tensors& in) {
            return as_strided_scatter(contiguous(in[0]), in[1], {3, 2}, {6, 1}, 7 + contiguous(in[0]).storage_offset());
          },
          [](const Sizes& i) -> Sizes {
            if (!(i[0] > 0 && (i[1] == 1 || i[1] == 2))) return {};
            return {i[0] - 1, i[1] - 1};
          }),
  };
}

}  // namespace tercel::test
