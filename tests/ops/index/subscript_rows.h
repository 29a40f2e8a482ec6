// Conformance rows of x[...]; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/index/nonzero.h"
#include "tercel/ops/index/subscript.h"
#include "tests/ops/index/gather_rows.h"

namespace tercel::test {

/** From an index of the result, and the values of the index tensors there, to the index of x. */
using IndexedPlace = std::function<Sizes(const Sizes& at, const std::vector<Tensor>& in)>;

inline double value_at(const Tensor& t, const Sizes& at) {
  int64_t place = 0;
  const DimVector strides = contiguous_strides(t.sizes());
  for (size_t d = 0; d < at.size(); ++d) place += at[d] * strides[d];
  return values_of(t)[static_cast<size_t>(place)];
}

/** Calls visit(index) for each index of the sizes, in row-major order. */
template <class Visit>
void for_each_index(const Sizes& sizes, Visit visit) {
  int64_t numel = 1;
  for (const int64_t s : sizes) numel *= s;
  Sizes at(sizes.size(), 0);
  for (int64_t i = 0; i < numel; ++i) {
    visit(at);
    for (size_t d = sizes.size(); d-- > 0 && ++at[d] == sizes[d];) at[d] = 0;
  }
}

inline Input index_input(const Sizes& sizes, int64_t size, ScalarType type = kInt64) {
  return {sizes, -static_cast<double>(size), static_cast<double>(size - 1), type, false};
}

inline Row get_row(const std::string& name, std::vector<Input> inputs, const Sizes& out_sizes, Function run,
                   const IndexedPlace& place) {
  Row row = index_row(name, std::move(inputs), std::move(run), [out_sizes, place](const std::vector<Tensor>& in) {
    std::vector<double> out;
    for_each_index(out_sizes, [&](const Sizes& at) { out.push_back(value_at(in[0], place(at, in))); });
    return make(out_sizes, kFloat64, out);
  });
  row.dtypes = all_types();
  return row;
}

/** x[place(at)] = or += values[at] for each index of the values, in row-major order. */
inline Row put_row(const std::string& name, std::vector<Input> inputs, bool accumulate,
                   const std::function<std::vector<TensorIndex>(const std::vector<Tensor>&)>& items,
                   const IndexedPlace& place) {
  const Sizes value_sizes = inputs.back().sizes;
  Row row = index_row(
      name, std::move(inputs),
      [items, accumulate](const std::vector<Tensor>& in) { return index_put(in[0], items(in), in.back(), accumulate); },
      [value_sizes, place, accumulate](const std::vector<Tensor>& in) {
        std::vector<double> out = values_of(in[0]);
        const DimVector strides = contiguous_strides(in[0].sizes());
        for_each_index(value_sizes, [&](const Sizes& at) {
          const Sizes where = place(at, in);
          int64_t i = 0;
          for (size_t d = 0; d < where.size(); ++d) i += where[d] * strides[d];
          double& to = out[static_cast<size_t>(i)];
          to = (accumulate ? to : 0) + value_at(in.back(), at);
        });
        return make(in[0].sizes().to_vector(), kFloat64, out);
      });
  row.inplace = [items, accumulate](const std::vector<Tensor>& in) {
    index_put_(in[0], items(in), in.back(), accumulate);
  };
  row.ulps = accumulate ? 4 : 0;
  row.scale = accumulate ? 40 : 0;
  return row;
}

inline std::vector<Row> subscript_rows() {
  using Tensors = std::vector<Tensor>;
  using indexing::None;
  using indexing::Slice;
  const auto wrapped = [](const Tensor& index, const Sizes& at, int64_t size) {
    const auto i = static_cast<int64_t>(value_at(index, at));
    return i < 0 ? i + size : i;
  };
  std::vector<Row> rows = {
      get_row(
          "subscript_rows", {{{5, 6}}, index_input({7}, 5)}, {7, 6},
          [](const Tensors& in) { return index(in[0], {in[1]}); },
          [=](const Sizes& at, const Tensors& in) {
            return Sizes{wrapped(in[1], {at[0]}, 5), at[1]};
          }),
      get_row(
          "index_columns_int32", {{{3, 5, 4}}, index_input({2, 3}, 5, kInt32)}, {3, 2, 3, 4},
          [](const Tensors& in) {
            return index(in[0], {Slice(), in[1]});
          },
          [=](const Sizes& at, const Tensors& in) {
            return Sizes{at[0], wrapped(in[1], {at[1], at[2]}, 5), at[3]};
          }),
      get_row(
          "index_pair", {{{4, 5, 3}}, index_input({3, 1}, 4), index_input({2}, 5)}, {3, 2, 3},
          [](const Tensors& in) {
            return index(in[0], {in[1], in[2]});
          },
          [=](const Sizes& at, const Tensors& in) {
            return Sizes{wrapped(in[1], {at[0], 0}, 4), wrapped(in[2], {at[1]}, 5), at[2]};
          }),
      get_row(
          "index_of_ones", {{{4, 1, 5}}, index_input({3, 1}, 4), index_input({1, 1}, 1), index_input({1, 2}, 5)},
          {3, 2},
          [](const Tensors& in) {
            return index(in[0], {in[1], in[2], in[3]});
          },
          [=](const Sizes& at, const Tensors& in) {
            return Sizes{wrapped(in[1], {at[0], 0}, 4), 0, wrapped(in[3], {0, at[1]}, 5)};
          }),
      get_row(
          "index_apart", {{{4, 3, 5}}, index_input({6}, 4), index_input({6}, 5)}, {6, 3},
          [](const Tensors& in) {
            return index(in[0], {in[1], Slice(), in[2]});
          },
          [=](const Sizes& at, const Tensors& in) {
            return Sizes{wrapped(in[1], {at[0]}, 4), at[1], wrapped(in[2], {at[0]}, 5)};
          }),
      get_row(
          "index_mixed", {{{4, 6, 5}}, index_input({3}, 5)}, {1, 3, 3},
          [](const Tensors& in) {
            return index(in[0], {2, None, Slice(None, None, -2), in[1]});
          },
          [=](const Sizes& at, const Tensors& in) {
            return Sizes{2, 5 - 2 * at[1], wrapped(in[1], {at[2]}, 5)};
          }),
      put_row(
          "index_put_pair", {{{4, 5, 3}}, index_input({3, 1}, 4), index_input({2}, 5), {{3, 2, 3}}}, true,
          [](const Tensors& in) {
            return std::vector<TensorIndex>{in[1], in[2]};
          },
          [=](const Sizes& at, const Tensors& in) {
            return Sizes{wrapped(in[1], {at[0], 0}, 4), wrapped(in[2], {at[1]}, 5), at[2]};
          }),
      // Each element once: the gradient of a value that another one replaces would be zero.
      put_row(
          "index_put_columns", {{{3, 5}}, {{3, 4}}}, false,
          [](const Tensors&) {
            return std::vector<TensorIndex>{Slice(), make({4}, kInt64, {3, 0, -1, 1})};
          },
          [](const Sizes& at, const Tensors&) {
            return Sizes{at[0], Sizes{3, 0, 4, 1}[static_cast<size_t>(at[1])]};
          }),
  };
  return rows;
}

}  // namespace tercel::test
