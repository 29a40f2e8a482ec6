// Conformance rows of searching and counting; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <vector>

#include "tercel/ops/reduce/histogram.h"
#include "tercel/ops/reduce/segment_reduce.h"
#include "tercel/ops/sort/search.h"
#include "tercel/ops/sort/sort.h"
#include "tests/ops/common/line_reference.h"

namespace tercel::test {

/** Insertion points of values [4, 9] in the lines of [4, 20], or in one line [20]. */
inline Row searchsorted_row(const std::string& name, bool right, bool shared) {
  Row row;
  row.name = name;
  row.inputs = {{shared ? Sizes{20} : Sizes{4, 20}}, {{4, 9}}};
  row.run = [right, shared](const std::vector<Tensor>& in) {
    const Tensor sorted = sort(in[0]).values;
    return shared ? bucketize(in[1], sorted, false, right) : searchsorted(sorted, in[1], false, right);
  };
  row.reference = [right, shared](const std::vector<Tensor>& in) {
    std::vector<double> lines = values_of(in[0]);
    const std::vector<double> values = values_of(in[1]);
    std::vector<double> out;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto begin = lines.begin() + (shared ? 0 : static_cast<std::ptrdiff_t>(i / 9) * 20);
      std::sort(begin, begin + 20);
      const auto at =
          right ? std::upper_bound(begin, begin + 20, values[i]) : std::lower_bound(begin, begin + 20, values[i]);
      out.push_back(static_cast<double>(at - begin));
    }
    return make({4, 9}, kFloat64, out);
  };
  row.dtypes = all_types();
  row.differentiable = false;
  row.ulps = 0;
  return row;
}

inline Row isin_row() {
  Row row;
  row.name = "isin";
  row.inputs = {{{6, 7}, -9, 9}, {{5}, -9, 9}};
  row.run = [](const std::vector<Tensor>& in) { return isin(in[0], in[1]); };
  row.reference = [](const std::vector<Tensor>& in) {
    const std::vector<double> tests = values_of(in[1]);
    std::vector<double> out;
    for (const double v : values_of(in[0])) out.push_back(std::find(tests.begin(), tests.end(), v) != tests.end());
    return make({6, 7}, kFloat64, out);
  };
  row.dtypes = all_types();
  row.differentiable = false;
  row.ulps = 0;
  return row;
}

inline Row bincount_row() {
  Row row;
  row.name = "bincount";
  row.inputs = {{{90}, 0, 12, kInt64}, {{90}}};
  row.run = [](const std::vector<Tensor>& in) { return bincount(in[0], in[1], 20); };
  row.reference = [](const std::vector<Tensor>& in) {
    const std::vector<double> at = values_of(in[0]), weights = values_of(in[1]);
    std::vector<double> out(20);
    for (size_t i = 0; i < at.size(); ++i) out[static_cast<size_t>(at[i])] += weights[i];
    return make({20}, kFloat64, out);
  };
  row.dtypes = number_types();
  row.differentiable = false;
  row.ulps = 8;
  row.scale = 30;
  return row;
}

/** The number of elements of [9, 20] in each of 7 intervals. */
inline Row histogram_row(const std::string& name, bool c) {
  Row row;
  row.name = name;
  row.inputs = {{{9, 20}}};
  row.run = [c](const std::vector<Tensor>& in) {
    return c ? histc(in[0], 7, -2.5, 2.75) : histogram(in[0], 7, std::pair<double, double>{-2.5, 2.75}).hist;
  };
  row.reference = [](const std::vector<Tensor>& in) {
    std::vector<double> out(7);
    for (const double v : values_of(in[0]))
      if (v >= -2.5 && v <= 2.75) out[std::min<size_t>(6, static_cast<size_t>((v + 2.5) / 0.75))] += 1;
    return make({7}, kFloat64, out);
  };
  row.differentiable = false;
  row.ulps = 0;
  return row;
}

/** Segments of lengths 2, 0, 4 of [6, 3]. */
inline Row segment_reduce_row(const std::string& reduce, double start, double (*combine)(double, double)) {
  Row row;
  row.name = "segment_" + reduce;
  row.inputs = {{{6, 3}}};
  row.run = [reduce](const std::vector<Tensor>& in) {
    return segment_reduce(in[0], reduce, make({3}, kInt64, {2, 0, 4}), {}, {}, 0, false, 0.5);
  };
  row.reference = [start, combine](const std::vector<Tensor>& in) {
    const std::vector<double> x = values_of(in[0]);
    std::vector<double> out(9, start);
    for (size_t i = 0; i < x.size(); ++i) {
      double& to = out[(i / 3 < 2 ? 0 : 6) + i % 3];
      to = combine(to, x[i]);
    }
    return make({3, 3}, kFloat64, out);
  };
  row.ulps = 8;
  row.scale = 16;
  return row;
}

inline std::vector<Row> search_rows() {
  return {
      searchsorted_row("searchsorted", false, false),
      searchsorted_row("searchsorted_right", true, false),
      searchsorted_row("bucketize", false, true),
      isin_row(),
      bincount_row(),
      histogram_row("histc", true),
      histogram_row("histogram", false),
      segment_reduce_row("sum", 0.5, [](double a, double b) { return a + b; }),
      segment_reduce_row("max", 0.5, [](double a, double b) { return std::max(a, b); }),
      segment_reduce_row("prod", 0.5, [](double a, double b) { return a * b; }),
  };
}

}  // namespace tercel::test
