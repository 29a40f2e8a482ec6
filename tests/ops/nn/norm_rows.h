// Conformance rows of layer, group and instance normalization; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/nn/norm.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** `rows` groups of equal size, each normalised; weight and bias of element i of the whole are number which(i). */
template <class Which>
Row norm_row(const std::string& name, const Sizes& sizes, int64_t rows, int64_t affine, bool centre,
             const Function& run, Which which, const Sizes& affine_sizes = {}) {
  Row row;
  row.name = name;
  row.inputs = {{sizes}};
  for (int64_t i = 0; i < affine; ++i) row.inputs.push_back({affine_sizes});
  row.run = run;
  row.reference = [rows, centre, which](const std::vector<Tensor>& in) {
    const std::vector<double> x = values_of(in[0]);
    const std::vector<double> weight = in.size() > 1 ? values_of(in[1]) : std::vector<double>(),
                              bias = in.size() > 2 ? values_of(in[2]) : std::vector<double>();
    const size_t n = x.size() / static_cast<size_t>(rows);
    std::vector<double> out;
    for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
      double mean = 0, square = 0;
      for (size_t i = r * n; i < (r + 1) * n; ++i) mean += centre ? x[i] / static_cast<double>(n) : 0;
      for (size_t i = r * n; i < (r + 1) * n; ++i) square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
      for (size_t i = r * n; i < (r + 1) * n; ++i) {
        const double h = (x[i] - mean) / std::sqrt(square + 1e-5);
        out.push_back(h * (weight.empty() ? 1 : weight[which(i)]) + (bias.empty() ? 0 : bias[which(i)]));
      }
    }
    return make(in[0].sizes().to_vector(), kFloat64, out);
  };
  row.ulps = 32;
  row.scale = 32;
  return row;
}

inline std::vector<Row> norm_rows() {
  using In = const std::vector<Tensor>&;
  std::vector<Row> rows = {
      norm_row(
          "layer_norm", {5, 3, 37}, 15, 2, true, [](In in) { return layer_norm(in[0], {37}, in[1], in[2]); },
          [](size_t i) { return i % 37; }, {37}),
      norm_row(
          "layer_norm_two", {4, 3, 5}, 4, 2, true,
          [](In in) {
            return layer_norm(in[0], {3, 5}, in[1], in[2]);
          },
          [](size_t i) { return i % 15; }, {3, 5}),
      norm_row(
          "layer_norm_plain", {4, 9}, 4, 0, true, [](In in) { return layer_norm(in[0], {9}); },
          [](size_t) { return size_t{0}; }),
      norm_row(
          "rms_norm", {5, 40}, 5, 1, false, [](In in) { return rms_norm(in[0], {40}, in[1], 1e-5); },
          [](size_t i) { return i % 40; }, {40}),
      norm_row(
          "group_norm", {3, 6, 4, 3}, 6, 2, true, [](In in) { return group_norm(in[0], 2, in[1], in[2]); },
          [](size_t i) { return i / 12 % 6; }, {6}),
      norm_row(
          "instance_norm", {3, 4, 9}, 12, 2, true, [](In in) { return instance_norm(in[0], {}, {}, in[1], in[2]); },
          [](size_t i) { return i / 9 % 4; }, {4}),
  };
  Row local;
  local.name = "local_response_norm";
  local.inputs = {{{2, 6, 3, 2}}};
  local.run = [](In in) { return local_response_norm(in[0], 3, 0.5, 0.75, 2); };
  local.reference = [](In in) {
    const std::vector<double> x = values_of(in[0]);
    std::vector<double> out;
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = i / 6 % 6;
      double sum = x[i] * x[i];
      if (c > 0) sum += x[i - 6] * x[i - 6];
      if (c < 5) sum += x[i + 6] * x[i + 6];
      out.push_back(x[i] / std::pow(2 + 0.5 * sum / 3, 0.75));
    }
    return make({2, 6, 3, 2}, kFloat64, out);
  };
  local.ulps = 32;
  local.dtypes = {kFloat32, kFloat64};
  rows.push_back(local);
  return rows;
}

}  // namespace tercel::test
