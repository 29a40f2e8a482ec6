// Conformance rows of scans; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/reduce/scan.h"
#include "tests/ops/common/line_reference.h"

namespace tercel::test {

inline Line running(const Line& x, double start, double (*combine)(double, double)) {
  Line out;
  for (const double v : x) out.push_back(start = combine(start, v));
  return out;
}
inline Line cumsum_of(const Line& x) {
  return running(x, 0, [](double a, double b) { return a + b; });
}
inline Line cumprod_of(const Line& x) {
  return running(x, 1, [](double a, double b) { return a * b; });
}
inline Line cummax_of(const Line& x) {
  return running(x, -INFINITY, [](double a, double b) { return b > a ? b : a; });
}
inline Line cummin_of(const Line& x) {
  return running(x, INFINITY, [](double a, double b) { return b < a ? b : a; });
}
/** The index of the last maximum (sign -1: minimum). */
inline Line where_best_of(const Line& x, double sign) {
  Line out;
  size_t best = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (sign * x[i] >= sign * x[best]) best = i;
    out.push_back(static_cast<double>(best));
  }
  return out;
}
inline Line logcumsumexp_of(const Line& x) {
  return running(x, -INFINITY, [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); });
}

inline std::vector<Row> scan_rows() {
  using Tensors = std::vector<Tensor>;
  std::vector<Row> rows = {
      line_row(
          "cumsum_rows", {3, 150}, 1, [](const Tensors& in) { return cumsum(in[0], 1); }, cumsum_of),
      line_row(
          "cumsum_columns", {9, 37}, 0, [](const Tensors& in) { return cumsum(in[0], 0); }, cumsum_of),
      line_row(
          "cumsum_middle", {3, 5, 18}, -2, [](const Tensors& in) { return cumsum(in[0], -2); }, cumsum_of),
      line_row(
          "cumprod_rows", {3, 8}, 1, [](const Tensors& in) { return cumprod(in[0], 1); }, cumprod_of),
      line_row(
          "cumprod_columns", {8, 19}, 0, [](const Tensors& in) { return cumprod(in[0], 0); }, cumprod_of),
      line_row(
          "cummax_rows", {4, 70}, 1, [](const Tensors& in) { return cummax(in[0], 1).values; }, cummax_of),
      line_row(
          "cummax_columns", {20, 33}, 0, [](const Tensors& in) { return cummax(in[0], 0).values; }, cummax_of),
      line_row(
          "cummin_middle", {3, 7, 5}, 1, [](const Tensors& in) { return cummin(in[0], 1).values; }, cummin_of),
      line_row(
          "cummax_indices", {4, 70}, 1, [](const Tensors& in) { return cummax(in[0], 1).indices; },
          [](const Line& x) { return where_best_of(x, 1); }),
      line_row(
          "cummin_indices_columns", {20, 33}, 0, [](const Tensors& in) { return cummin(in[0], 0).indices; },
          [](const Line& x) { return where_best_of(x, -1); }),
      line_row(
          "logcumsumexp_rows", {3, 20}, 1, [](const Tensors& in) { return logcumsumexp(in[0], 1); }, logcumsumexp_of),
      line_row(
          "logcumsumexp_columns", {7, 6}, 0, [](const Tensors& in) { return logcumsumexp(in[0], 0); }, logcumsumexp_of),
  };
  for (Row& row : rows) {
    if (row.name.starts_with("cumsum")) {
      row.ulps = 4;
      row.scale = 60;
      row.inplace = [dim = row.name == "cumsum_rows"      ? 1
                           : row.name == "cumsum_columns" ? 0
                                                          : -2](const Tensors& in) { cumsum_(in[0], dim); };
    }
    if (row.name.starts_with("cumprod")) {
      row.ulps = 8;
      row.inputs[0].low = 0.5;
      row.inputs[0].high = 1.75;
      row.inplace = [dim = row.name == "cumprod_rows" ? 1 : 0](const Tensors& in) { cumprod_(in[0], dim); };
    }
    if (row.name.starts_with("log")) {
      row.dtypes = floating_types();
      row.ulps = 8;
      row.scale = 2;
    }
    if (row.name.find("indices") != std::string::npos) row.differentiable = false;
  }
  return rows;
}

}  // namespace tercel::test
