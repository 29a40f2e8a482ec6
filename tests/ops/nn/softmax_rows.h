// Conformance rows of softmax; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tercel/ops/nn/softmax.h"
#include "tests/ops/rows.h"

namespace tercel::test {

inline Tensor softmax_reference(const Tensor& x, int64_t dim, bool log_of) {
  const size_t d = static_cast<size_t>(dim);
  size_t outer = 1, inner = 1;
  const size_t n = static_cast<size_t>(x.sizes()[d]);
  for (size_t i = 0; i < x.sizes().size(); ++i)
    (i < d ? outer : (i > d ? inner : outer)) *= i == d ? 1 : static_cast<size_t>(x.sizes()[i]);
  std::vector<double> values = values_of(x);
  for (size_t o = 0; o < outer; ++o) {
    for (size_t c = 0; c < inner; ++c) {
      double* first = values.data() + o * n * inner + c;
      double top = -INFINITY, sum = 0;
      for (size_t i = 0; i < n; ++i) top = std::max(top, first[i * inner]);
      for (size_t i = 0; i < n; ++i) sum += std::exp(first[i * inner] - top);
      for (size_t i = 0; i < n; ++i) {
        double& v = first[i * inner];
        v = log_of ? v - top - std::log(sum) : std::exp(v - top) / sum;
      }
    }
  }
  return make(x.sizes().to_vector(), kFloat64, values);
}

inline Row softmax_row(const std::string& name, const Sizes& sizes, int64_t dim, bool log_of) {
  Row row;
  row.name = name;
  row.inputs = {{sizes, -8, 8}};
  row.run = [dim, log_of](const std::vector<Tensor>& in) {
    return log_of ? log_softmax(in[0], dim) : softmax(in[0], dim);
  };
  row.reference = [dim, log_of](const std::vector<Tensor>& in) { return softmax_reference(in[0], dim, log_of); };
  row.ulps = 16;
  row.scale = log_of ? 8 : 0;
  return row;
}

inline std::vector<Row> softmax_rows() {
  return {
      softmax_row("softmax_rows", {6, 35}, 1, false),       softmax_row("softmax_columns", {9, 37}, 0, false),
      softmax_row("softmax_middle", {3, 5, 18}, 1, false),  softmax_row("log_softmax_rows", {6, 35}, 1, true),
      softmax_row("log_softmax_columns", {9, 37}, 0, true), softmax_row("log_softmax_middle", {3, 5, 18}, 1, true),
  };
}

}  // namespace tercel::test
