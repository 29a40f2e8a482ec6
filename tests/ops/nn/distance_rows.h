// Conformance rows of distances; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tercel/ops/nn/distance.h"
#include "tests/ops/rows.h"

namespace tercel::test {

inline double power_distance(const std::vector<double>& a, size_t i, const std::vector<double>& b, size_t j, size_t n,
                             double p) {
  double sum = 0;
  for (size_t k = 0; k < n; ++k) {
    const double d = std::abs(a[i * n + k] - b[j * n + k]);
    if (std::isinf(p))
      sum = std::max(sum, d);
    else
      sum += p == 0 ? (d != 0 ? 1.0 : 0.0) : std::pow(d, p);
  }
  return std::isinf(p) || p == 0 ? sum : std::pow(sum, 1 / p);
}

inline Row cdist_row(const std::string& name, double p, CdistMode mode, double scale) {
  Row row;
  row.name = name;
  row.inputs = {{{5, 4}}, {{3, 4}}};
  row.run = [p, mode](const std::vector<Tensor>& in) { return cdist(in[0], in[1], p, mode); };
  row.reference = [p](const std::vector<Tensor>& in) {
    const std::vector<double> a = values_of(in[0]), b = values_of(in[1]);
    std::vector<double> out;
    for (size_t i = 0; i < 5; ++i)
      for (size_t j = 0; j < 3; ++j) out.push_back(power_distance(a, i, b, j, 4, p));
    return make({5, 3}, kFloat64, out);
  };
  row.dtypes = {kFloat32, kFloat64};
  row.ulps = 16;
  row.scale = scale;
  row.bitwise = false;
  return row;
}

inline std::vector<Row> distance_rows() {
  std::vector<Row> rows = {
      cdist_row("cdist", 2, CdistMode::DoNotUseMm, 8),
      cdist_row("cdist_by_product", 2, CdistMode::UseMm, 400),
      cdist_row("cdist_1", 1, CdistMode::UseMmIfNecessary, 8),
      cdist_row("cdist_3", 3, CdistMode::UseMmIfNecessary, 32),
      cdist_row("cdist_half", 0.5, CdistMode::UseMmIfNecessary, 200),
      cdist_row("cdist_largest", HUGE_VAL, CdistMode::UseMmIfNecessary, 8),
      cdist_row("cdist_0", 0, CdistMode::UseMmIfNecessary, 8),
  };
  Row pairs = cdist_row("pdist", 2, CdistMode::DoNotUseMm, 8);
  pairs.inputs = {{{5, 4}}};
  pairs.run = [](const std::vector<Tensor>& in) { return pdist(in[0]); };
  pairs.reference = [](const std::vector<Tensor>& in) {
    const std::vector<double> a = values_of(in[0]);
    std::vector<double> out;
    for (size_t i = 0; i < 5; ++i)
      for (size_t j = i + 1; j < 5; ++j) out.push_back(power_distance(a, i, a, j, 4, 2));
    return make({10}, kFloat64, out);
  };
  rows.push_back(pairs);
  Row whole = cdist_row("dist", 3, CdistMode::DoNotUseMm, 32);
  whole.inputs = {{{5, 4}}, {{5, 4}}};
  whole.run = [](const std::vector<Tensor>& in) { return dist(in[0], in[1], 3); };
  whole.reference = [](const std::vector<Tensor>& in) {
    return make({}, kFloat64, {power_distance(values_of(in[0]), 0, values_of(in[1]), 0, 20, 3)});
  };
  rows.push_back(whole);
  return rows;
}

}  // namespace tercel::test
