// Conformance rows of sorting; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tercel/ops/sort/sort.h"
#include "tercel/ops/sort/unique.h"
#include "tests/ops/common/line_reference.h"

namespace tercel::test {

/** Whether a comes before b: NaN is the largest. */
inline bool before(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

/** Stable order of the n elements first, first + step ... */
inline std::vector<size_t> order_of(const std::vector<double>& v, size_t first, size_t step, size_t n,
                                    bool descending) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  const auto at = [&](size_t i) { return v[first + i * step]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return descending ? before(at(b), at(a)) : before(at(a), at(b)); });
  return order;
}

struct Sorted {
  std::vector<double> values, indices;
};
inline Sorted sort_reference(const Tensor& x, size_t dim, bool descending) {
  const std::vector<double> v = values_of(x);
  const DimVector strides = contiguous_strides(x.sizes());
  const size_t n = static_cast<size_t>(x.sizes()[dim]), step = static_cast<size_t>(strides[dim]);
  Sorted out{v, std::vector<double>(v.size())};
  for (size_t first = 0; first < v.size(); ++first) {
    if (first / step % n != 0) continue;
    const std::vector<size_t> order = order_of(v, first, step, n, descending);
    for (size_t i = 0; i < n; ++i) {
      out.values[first + i * step] = v[first + order[i] * step];
      out.indices[first + i * step] = static_cast<double>(order[i]);
    }
  }
  return out;
}

inline Row sort_row(const std::string& name, const Sizes& sizes, size_t dim, bool descending, bool indices) {
  Row row;
  row.name = name;
  row.inputs = {{sizes}};
  row.run = [dim, descending, indices](const std::vector<Tensor>& in) {
    const int64_t d = static_cast<int64_t>(dim);
    return indices ? argsort(in[0], d, descending) : sort(in[0], d, descending).values;
  };
  row.reference = [dim, descending, indices](const std::vector<Tensor>& in) {
    const Sorted sorted = sort_reference(in[0], dim, descending);
    return make(in[0].sizes().to_vector(), kFloat64, indices ? sorted.indices : sorted.values);
  };
  row.dtypes = all_types();
  row.differentiable = !indices;
  row.ulps = 0;
  return row;
}

/** The values of unique(), or the inverse indices. */
inline Row unique_row(const std::string& name, const Sizes& sizes, bool inverse) {
  Row row;
  row.name = name;
  row.inputs = {{sizes, -20, 20}};
  row.run = [inverse](const std::vector<Tensor>& in) {
    const UniqueValues unique_values = unique(in[0], inverse);
    return inverse ? unique_values.inverse : unique_values.values;
  };
  row.reference = [inverse](const std::vector<Tensor>& in) {
    const std::vector<double> x = values_of(in[0]);
    std::vector<double> values = x;
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    if (!inverse) return make({static_cast<int64_t>(values.size())}, kFloat64, values);
    std::vector<double> places;
    for (const double v : x)
      places.push_back(static_cast<double>(std::lower_bound(values.begin(), values.end(), v) - values.begin()));
    return make(in[0].sizes().to_vector(), kFloat64, places);
  };
  row.dtypes = all_types();
  row.differentiable = false;
  row.ulps = 0;
  return row;
}

/** The length of each run. */
inline Row unique_consecutive_row() {
  Row row = unique_row("unique_consecutive", {9, 5}, false);
  row.inputs = {{{9, 5}, 0, 1.4}};
  row.dtypes = integer_types();
  row.dtypes.push_back(kBool);
  row.run = [](const std::vector<Tensor>& in) { return unique_consecutive(in[0], false, true).counts; };
  row.reference = [](const std::vector<Tensor>& in) {
    const std::vector<double> x = values_of(in[0]);
    std::vector<double> counts;
    for (size_t i = 0; i < x.size(); ++i) {
      if (i == 0 || x[i] != x[i - 1]) counts.push_back(0);
      counts.back() += 1;
    }
    return make({static_cast<int64_t>(counts.size())}, kFloat64, counts);
  };
  return row;
}

inline std::vector<Row> sort_rows() {
  return {
      sort_row("sort_rows", {5, 40}, 1, false, false),
      sort_row("sort_columns_descending", {40, 3}, 0, true, false),
      sort_row("sort_middle", {3, 9, 4}, 1, false, false),
      sort_row("sort_radix", {300}, 0, false, false),
      sort_row("argsort_rows_descending", {5, 40}, 1, true, true),
      sort_row("argsort_radix", {2, 700}, 1, false, true),
      line_row(
          "msort", {12, 3}, 0, [](const std::vector<Tensor>& in) { return msort(in[0]); },
          [](const Line& x) {
            Line out = x;
            std::sort(out.begin(), out.end());
            return out;
          }),
      unique_row("unique", {7, 40}, false),
      unique_row("unique_inverse", {7, 40}, true),
      unique_consecutive_row(),
  };
}

}  // namespace tercel::test
