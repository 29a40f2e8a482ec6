// Conformance rows of views and copies; see Note [Conformance rows].
#pragma once

#include <functional>
#include <vector>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/views/views.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** Maps an index of the result to an index of x; none where the result is zero. */
using IndexMap = std::function<Sizes(const Sizes&)>;

/** The result's element at each index; 0 if it is not an element of x. */
inline std::vector<double> values_seen(const Tensor& x, const std::vector<double>& values_of_x, const Sizes& sizes,
                                       const IndexMap& from) {
  const DimVector strides = contiguous_strides(x.sizes());
  std::vector<double> values;
  Sizes index(sizes.size(), 0);
  for (int64_t i = 0, n = numel_of(sizes); i < n; ++i) {
    const Sizes source = from(index);
    int64_t place = 0;
    for (size_t d = 0; d < source.size(); ++d) place += source[d] * strides[d];
    values.push_back(source.empty() && x.dim() > 0 ? 0.0 : values_of_x[static_cast<size_t>(place)]);
    for (size_t d = sizes.size(); d-- > 0 && ++index[d] == sizes[d];) index[d] = 0;
  }
  return values;
}

/** An op that places elements of x at other positions, with zeros where `from` gives no index. */
inline Row view_row(const std::string& name, const Sizes& sizes_of_x, const Sizes& sizes, Function run,
                    const IndexMap& from) {
  Row row;
  row.name = name;
  row.inputs = {{sizes_of_x}};
  row.run = std::move(run);
  row.reference = [sizes, from](const std::vector<Tensor>& in) {
    return make(sizes, kFloat64, values_seen(in[0], values_of(in[0]), sizes, from));
  };
  row.dtypes = all_types();
  row.ulps = 0;
  add_reference_by_parts(row);
  return row;
}

/** The same elements in row-major order; view() requires that order in memory too. */
inline Row order_row(const std::string& name, const Sizes& sizes_of_x, const Sizes& sizes, Function run) {
  Row row = view_row(name, sizes_of_x, sizes, std::move(run), [](const Sizes& i) { return i; });
  row.reference = [sizes](const std::vector<Tensor>& in) { return make(sizes, kFloat64, values_of(in[0])); };
  add_reference_by_parts(row);
  return row;
}

inline std::vector<Row> views_rows() {
  using Tensors = std::vector<Tensor>;
  return {
      order_row("view", {4, 6}, {2, 12},
                [](const Tensors& in) {
                  return view(contiguous(in[0]), {2, -1});
                }),
      order_row("reshape", {4, 6}, {3, 2, 4},
                [](const Tensors& in) {
                  return reshape(in[0], {3, 2, 4});
                }),
      order_row("flatten", {2, 3, 4}, {2, 12}, [](const Tensors& in) { return flatten(in[0], 1); }),
      order_row("squeeze", {3, 1, 4}, {3, 4}, [](const Tensors& in) { return squeeze(in[0], 1); }),
      order_row("squeeze_all", {1, 3, 1}, {3}, [](const Tensors& in) { return squeeze(in[0]); }),
      order_row("unsqueeze", {3, 4}, {3, 1, 4}, [](const Tensors& in) { return unsqueeze(in[0], 1); }),
      view_row(
          "expand", {3, 1}, {2, 3, 4},
          [](const Tensors& in) {
            return expand(in[0], {2, -1, 4});
          },
          [](const Sizes& i) -> Sizes {
            return {i[1], 0};
          }),
      view_row(
          "as_strided", {4, 6}, {3, 2},
          [](const Tensors& in) {
            const Tensor x = contiguous(in[0]);
            return as_strided(x, {3, 2}, {7, 2}, x.storage_offset() + 1);
          },
          [](const Sizes& i) -> Sizes {
            return {i[0], i[0] + 2 * i[1] + 1};
          }),
      order_row("view_as", {4, 6}, {2, 12},
                [](const Tensors& in) {
                  return view_as(contiguous(in[0]), empty({2, 12}));
                }),
      order_row("reshape_as", {4, 6}, {2, 12},
                [](const Tensors& in) {
                  return reshape_as(in[0], empty({2, 12}));
                }),
      order_row("unflatten", {3, 8}, {3, 2, 4},
                [](const Tensors& in) {
                  return unflatten(in[0], -1, {2, -1});
                }),
      order_row("ravel", {3, 4}, {12}, [](const Tensors& in) { return ravel(in[0]); }),
      order_row("squeeze_dims", {1, 3, 1, 1}, {3, 1},
                [](const Tensors& in) {
                  return squeeze(in[0], {0, 1, -1});
                }),
      order_row("atleast_1d", {}, {1}, [](const Tensors& in) { return atleast_1d(in[0]); }),
      order_row("atleast_2d", {4}, {1, 4}, [](const Tensors& in) { return atleast_2d(in[0]); }),
      order_row("atleast_3d", {4, 3}, {4, 3, 1}, [](const Tensors& in) { return atleast_3d(in[0]); }),
      order_row("atleast_3d_vector", {4}, {1, 4, 1}, [](const Tensors& in) { return atleast_3d(in)[0]; }),
      view_row(
          "expand_as", {3, 1}, {3, 4},
          [](const Tensors& in) {
            return expand_as(in[0], empty({3, 4}));
          },
          [](const Sizes& i) -> Sizes {
            return {i[0], 0};
          }),
      view_row(
          "broadcast_to", {3, 1}, {2, 3, 2},
          [](const Tensors& in) {
            return broadcast_to(in[0], {2, -1, 2});
          },
          [](const Sizes& i) -> Sizes {
            return {i[1], 0};
          }),
      view_row(
          "broadcast_tensors", {3, 1}, {2, 3, 2},
          [](const Tensors& in) {
            return broadcast_tensors({in[0], empty({2, 1, 2})})[0];
          },
          [](const Sizes& i) -> Sizes {
            return {i[1], 0};
          }),
  };
}

inline std::vector<Row> copy_rows() {
  using Tensors = std::vector<Tensor>;
  const Sizes sizes = {5, 7};
  std::vector<Row> rows = {
      order_row("clone", sizes, sizes, [](const Tensors& in) { return clone(in[0]); }),
      order_row("contiguous", sizes, sizes, [](const Tensors& in) { return contiguous(in[0]); }),
      order_row("to", sizes, sizes, [](const Tensors& in) { return to(in[0], kFloat64); }),
      order_row("copy_", sizes, sizes, [](const Tensors& in) { return copy_(clone(in[0]), in[1]); }),
      order_row("fill_", sizes, sizes, [](const Tensors& in) { return fill_(clone(in[0]), 1); }),
      order_row("zero_", sizes, sizes, [](const Tensors& in) { return zero_(clone(in[0])); }),
      order_row("bitwise_not", sizes, sizes, [](const Tensors& in) { return bitwise_not(in[0]); }),
      order_row("sum_to_size", {4, 5, 7}, {5, 1},
                [](const Tensors& in) {
                  return sum_to_size(in[0], {5, 1});
                }),
  };
  for (Row& row : rows) {
    if (row.name == "copy_") {
      row.inputs = {{sizes}, {{5, 1}}};
      row.reference = elementwise_reference([](double, double source) { return source; });
      add_reference_by_parts(row);
    }
    // It drops the imaginary part.
    if (row.name == "to") row.complex_reference = nullptr;
    if (row.name == "fill_") {
      row.reference = elementwise_reference([](double) { return 1.0; });
      row.complex_reference = nullptr;
    }
    if (row.name == "zero_") {
      row.reference = elementwise_reference([](double) { return 0.0; });
      add_reference_by_parts(row);
    }
    if (row.name == "bitwise_not") {
      row.complex_reference = nullptr;
      row.dtypes = integer_types();
      row.reference = elementwise_reference([](double x) { return -x - 1; });
    }
    if (row.name == "sum_to_size") {
      row.dtypes = floating_types();
      row.bitwise = false;
      row.scale = 60;
      row.reference = [](const Tensors& in) {
        std::vector<double> out(5, 0);
        const std::vector<double> x = values_of(in[0]);
        for (size_t i = 0; i < x.size(); ++i) out[i / 7 % 5] += x[i];
        return make({5, 1}, kFloat64, out);
      };
      add_reference_by_parts(row);
    }
  }
  return rows;
}

}  // namespace tercel::test
