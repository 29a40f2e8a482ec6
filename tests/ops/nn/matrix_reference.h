// References of ops that work on the rows of matrices.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/ops/rows.h"

namespace tercel::test {

/** Rows of values, n of d each. */
using Matrix = std::vector<std::vector<double>>;
inline Matrix matrix_of(const Tensor& t) {
  Matrix m;
  const std::vector<double> values = values_of(t);
  const auto d = static_cast<size_t>(t.size(-1));
  for (size_t i = 0; i < values.size(); i += d)
    m.emplace_back(values.begin() + static_cast<int64_t>(i), values.begin() + static_cast<int64_t>(i + d));
  return m;
}
inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
inline double distance_of(const std::vector<double>& a, const std::vector<double>& b, double p) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(std::abs(a[i] - b[i] + 1e-6), p);
  return std::pow(sum, 1 / p);
}
inline double cosine_of(const std::vector<double>& a, const std::vector<double>& b, double eps = 0) {
  return dot(a, b) / std::sqrt((dot(a, a) + eps) * (dot(b, b) + eps));
}

/** An op of matrices [n, d] and a reference of their rows, with `cols` numbers in a row of the result (0: one). */
template <class F>
Row rows_row(const std::string& name, std::vector<Input> inputs, const Function& run, F of_row, bool mean = false) {
  Row row;
  row.name = name;
  row.inputs = std::move(inputs);
  row.run = run;
  row.reference = [of_row, mean](const std::vector<Tensor>& in) {
    std::vector<Matrix> m;
    for (const Tensor& t : in) m.push_back(matrix_of(t));
    std::vector<double> out;
    for (size_t i = 0; i < m[0].size(); ++i) out.push_back(of_row(m, i));
    if (!mean) return make({static_cast<int64_t>(out.size())}, kFloat64, out);
    double sum = 0;
    for (const double v : out) sum += v;
    return make({}, kFloat64, {sum / static_cast<double>(out.size())});
  };
  row.ulps = 32;
  row.scale = 32;
  row.bitwise = false;
  return row;
}

}  // namespace tercel::test
