// Conformance rows of differences and integrals; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/reduce/differences.h"
#include "tests/ops/common/line_reference.h"

namespace tercel::test {

inline Line diff_of(const Line& x) {
  Line out;
  for (size_t i = 1; i < x.size(); ++i) out.push_back(x[i] - x[i - 1]);
  return out;
}
inline Line areas_of(const Line& y, double dx) {
  Line out;
  double sum = 0;
  for (size_t i = 1; i < y.size(); ++i) out.push_back(sum += dx * (y[i] + y[i - 1]) / 2);
  return out;
}
inline Line gradient_of_line(const Line& x, double h) {
  const size_t n = x.size();
  Line out{(x[1] - x[0]) / h};
  for (size_t i = 1; i + 1 < n; ++i) out.push_back((x[i + 1] - x[i - 1]) / (2 * h));
  out.push_back((x[n - 1] - x[n - 2]) / h);
  return out;
}

/** Samples y [3, 6] at positions x [6]; `all` keeps the integral up to each. */
inline Row trapezoid_at_places_row(const std::string& name, bool all) {
  Row row;
  row.name = name;
  row.inputs = {{{3, 6}}, {{6}}};
  row.run = [all](const std::vector<Tensor>& in) {
    return all ? cumulative_trapezoid(in[0], in[1]) : trapezoid(in[0], in[1]);
  };
  row.reference = [all](const std::vector<Tensor>& in) {
    const std::vector<double> x = values_of(in[1]);
    const Tensor sums = map_lines(in[0], 1, [&](const Line& y) {
      Line out;
      double sum = 0;
      for (size_t i = 1; i < y.size(); ++i) out.push_back(sum += (x[i] - x[i - 1]) * (y[i] + y[i - 1]) / 2);
      return all ? out : Line{sum};
    });
    return all ? sums : make({3}, kFloat64, values_of(sums));
  };
  row.ulps = 8;
  row.scale = 60;
  row.bitwise = false;
  return row;
}

inline std::vector<Row> differences_rows() {
  using Tensors = std::vector<Tensor>;
  std::vector<Row> rows = {
      line_row(
          "diff", {3, 9}, 1, [](const Tensors& in) { return diff(in[0]); }, diff_of),
      line_row(
          "diff_twice_columns", {7, 4}, 0, [](const Tensors& in) { return diff(in[0], 2, 0); },
          [](const Line& x) { return diff_of(diff_of(x)); }),
      line_row(
          "trapezoid", {4, 7}, 1, [](const Tensors& in) { return trapezoid(in[0], 0.5); },
          [](const Line& y) { return Line{areas_of(y, 0.5).back()}; }, true),
      line_row(
          "trapz_columns", {7, 4}, 0, [](const Tensors& in) { return trapz(in[0], 1, 0); },
          [](const Line& y) { return Line{areas_of(y, 1).back()}; }, true),
      line_row(
          "cumulative_trapezoid", {4, 7}, 1, [](const Tensors& in) { return cumulative_trapezoid(in[0], 0.5); },
          [](const Line& y) { return areas_of(y, 0.5); }),
      line_row(
          "gradient", {5, 6}, 1, [](const Tensors& in) { return gradient(in[0], 0.5, {1})[0]; },
          [](const Line& x) { return gradient_of_line(x, 0.5); }),
      trapezoid_at_places_row("trapezoid_at_places", false),
      trapezoid_at_places_row("cumulative_trapezoid_at_places", true),
  };
  for (Row& row : rows) {
    if (row.name.starts_with("diff")) {
      row.dtypes = number_types();
      std::erase_if(row.dtypes, is_unsigned);
      row.ulps = 2;
      row.scale = 8;
    } else {
      row.dtypes = floating_types();
      row.ulps = 8;
      row.scale = 60;
      row.bitwise = false;
    }
  }
  return rows;
}

}  // namespace tercel::test
