// Conformance rows of order statistics; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tercel/ops/sort/order_statistics.h"
#include "tercel/ops/views/views.h"
#include "tests/ops/common/line_reference.h"
#include "tests/ops/sort/sort_rows.h"

namespace tercel::test {

/** The first k in sorted order, or their indices. */
inline Line top_of(const Line& x, size_t k, bool largest, bool indices) {
  const std::vector<size_t> order = order_of(x, 0, 1, x.size(), largest);
  Line out;
  for (size_t i = 0; i < k; ++i) out.push_back(indices ? static_cast<double>(order[i]) : x[order[i]]);
  return out;
}
inline Line rank_of(const Line& x, size_t rank, bool index = false) {
  return {top_of(x, rank + 1, false, index).back()};
}
inline Line mode_of(const Line& x, bool index) {
  double best = 0, where = 0;
  std::ptrdiff_t most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const std::ptrdiff_t count = std::count(x.begin(), x.end(), x[i]);
    if (count > most || (count == most && x[i] <= best)) {
      most = count;
      best = x[i];
      where = static_cast<double>(i);
    }
  }
  return {index ? where : best};
}
inline Line quantile_of(const Line& x, double q) {
  const double rank = q * static_cast<double>(x.size() - 1);
  const double low = rank_of(x, static_cast<size_t>(std::floor(rank)))[0];
  const double high = rank_of(x, static_cast<size_t>(std::ceil(rank)))[0];
  return {low + (rank - std::floor(rank)) * (high - low)};
}

inline std::vector<Row> order_statistics_rows() {
  using Tensors = std::vector<Tensor>;
  std::vector<Row> rows = {
      line_row(
          "topk_rows", {4, 70}, 1, [](const Tensors& in) { return topk(in[0], 5).values; },
          [](const Line& x) { return top_of(x, 5, true, false); }),
      line_row(
          "topk_long_row_smallest", {2, 3000}, 1, [](const Tensors& in) { return topk(in[0], 9, 1, false).values; },
          [](const Line& x) { return top_of(x, 9, false, false); }),
      line_row(
          "topk_columns_indices", {40, 6}, 0, [](const Tensors& in) { return topk(in[0], 7, 0).indices; },
          [](const Line& x) { return top_of(x, 7, true, true); }),
      line_row(
          "topk_most_of_a_row", {1, 2500}, 1, [](const Tensors& in) { return topk(in[0], 2000, 1).indices; },
          [](const Line& x) { return top_of(x, 2000, true, true); }),
      line_row(
          "kthvalue", {5, 31}, 1, [](const Tensors& in) { return kthvalue(in[0], 4).values; },
          [](const Line& x) { return rank_of(x, 3); }, true),
      line_row(
          "kthvalue_index", {31, 5}, 0, [](const Tensors& in) { return kthvalue(in[0], 20, 0, true).indices; },
          [](const Line& x) { return rank_of(x, 19, true); }),
      line_row(
          "median", {1, 30}, 1,
          [](const Tensors& in) {
            return reshape(median(in[0]), {1, 1});
          },
          [](const Line& x) { return rank_of(x, 14); }),
      line_row(
          "median_rows", {5, 31}, 1, [](const Tensors& in) { return median(in[0], 1).values; },
          [](const Line& x) { return rank_of(x, 15); }, true),
      line_row(
          "nanmedian_columns", {30, 5}, 0, [](const Tensors& in) { return nanmedian(in[0], 0).values; },
          [](const Line& x) { return rank_of(x, 14); }, true),
      line_row(
          "mode", {6, 40}, 1, [](const Tensors& in) { return mode(in[0], 1).values; },
          [](const Line& x) { return mode_of(x, false); }, true),
      line_row(
          "mode_index", {40, 6}, 0, [](const Tensors& in) { return mode(in[0], 0, true).indices; },
          [](const Line& x) { return mode_of(x, true); }),
      line_row(
          "quantile", {5, 18}, 1, [](const Tensors& in) { return quantile(in[0], 0.3, 1); },
          [](const Line& x) { return quantile_of(x, 0.3); }, true),
      line_row(
          "nanquantile_columns", {18, 5}, 0, [](const Tensors& in) { return nanquantile(in[0], 0.75, 0, true); },
          [](const Line& x) { return quantile_of(x, 0.75); }),
  };
  for (Row& row : rows) {
    if (row.name.find("quantile") != std::string::npos) {
      row.dtypes = {kFloat32, kFloat64};
      row.ulps = 4;
      row.scale = 16;
    }
    if (row.name.find("ind") != std::string::npos) row.differentiable = false;
    if (row.name == "topk_most_of_a_row") row.differentiable = false;
    if (row.name == "topk_long_row_smallest") row.gradient_sizes = {{2, 30}};
  }
  return rows;
}

}  // namespace tercel::test
