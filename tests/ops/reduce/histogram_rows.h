// Conformance rows of histograms; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tercel/ops/reduce/histogram.h"
#include "tests/ops/rows.h"

namespace tercel::test {

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

/** How many elements of [9, 20] lie in each of 7 intervals. */
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

inline std::vector<Row> histogram_rows() {
  return {
      bincount_row(),
      histogram_row("histc", true),
      histogram_row("histogram", false),
  };
}

}  // namespace tercel::test
