// Conformance rows of scatter and its reductions; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "tercel/ops/index/scatter.h"
#include "tests/ops/index/gather_rows.h"

namespace tercel::test {

/** change(element of the result, element of source) in the order of positions; then finish(result, before, counts). */
struct ScatterReference {
  std::function<double(double, double)> change;
  bool mean = false, include_self = true;
  double start = 0;

  Tensor operator()(const std::vector<Tensor>& in, size_t dim) const {
    std::vector<double> out = values_of(in[0]);
    const std::vector<double> source = values_of(in[2]);
    std::vector<double> count(out.size(), 0);
    walk_index(in[0], dim, in[1], [&](size_t i, size_t place) {
      if (count[place]++ == 0 && !include_self) out[place] = start;
      out[place] = change(out[place], source[i]);
    });
    if (mean)
      for (size_t i = 0; i < out.size(); ++i)
        if (count[i] > 0) out[i] /= count[i] + (include_self ? 1 : 0);
    return make(in[0].sizes().to_vector(), kFloat64, out);
  }
};

using ScatterFunction = std::function<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&)>;

inline Row scatter_row(const std::string& name, const Sizes& sizes_of_x, size_t dim, const Sizes& index,
                       ScalarType type, const ScatterFunction& run, const ScatterReference& reference) {
  const double high = static_cast<double>(sizes_of_x[dim] - 1);
  Row row = index_row(
      name, {{sizes_of_x}, {index, 0, high, type, false}, {index}},
      [=](const std::vector<Tensor>& in) { return run(in[0], static_cast<int64_t>(dim), in[1], in[2]); },
      [=](const std::vector<Tensor>& in) { return reference(in, dim); });
  row.ulps = 4;
  row.scale = 40;
  return row;
}

inline std::vector<Row> scatter_rows() {
  const ScatterFunction add = [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
    return scatter_add(x, dim, index, source);
  };
  const ScatterReference sum = {[](double a, double b) { return a + b; }};
  std::vector<Row> rows = {
      scatter_row("scatter_add_rows", {6, 5}, 0, {9, 5}, kInt64, add, sum),
      scatter_row("scatter_add_columns", {6, 5}, 1, {4, 8}, kInt32, add, sum),
      scatter_row("scatter_add_middle", {3, 4, 5}, 1, {3, 6, 5}, kInt64, add, sum),
  };
  for (Row& row : rows) {
    const int64_t dim = row.name == "scatter_add_rows" ? 0 : 1;
    row.inplace = [dim](const std::vector<Tensor>& in) { scatter_add_(in[0], dim, in[1], in[2]); };
  }
  // One index per line: among duplicates the last value remains, and the others have no gradient.
  rows.push_back(scatter_row("scatter", {4, 5}, 1, {4, 1}, kInt64,
                             [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
                               return scatter(x, dim, index, source);
                             },
                             {[](double, double b) { return b; }}));
  rows.back().inplace = [](const std::vector<Tensor>& in) { scatter_(in[0], 1, in[1], in[2]); };
  const auto reduction = [&](const std::string& name, ScatterReduction kind, bool include_self,
                             const ScatterReference& reference, const std::vector<ScalarType>& dtypes) {
    Row row = scatter_row(
        name + (include_self ? "" : "_without_self"), {3, 4}, 1, {3, 6}, kInt64,
        [=](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
          return scatter_reduce(x, dim, index, source, kind, include_self);
        },
        reference);
    row.inplace = [=](const std::vector<Tensor>& in) { scatter_reduce_(in[0], 1, in[1], in[2], kind, include_self); };
    row.dtypes = dtypes;
    rows.push_back(row);
  };
  const auto times = [](double a, double b) { return a * b; };
  const auto larger = [](double a, double b) { return std::max(a, b); };
  const auto smaller = [](double a, double b) { return std::min(a, b); };
  for (const bool self : {true, false}) {
    reduction("scatter_reduce_sum", ScatterReduction::Sum, self, {sum.change, false, self, 0}, number_types());
    reduction("scatter_reduce_prod", ScatterReduction::Product, self, {times, false, self, 1},
              {kFloat32, kFloat64, kInt64, kInt32});
    reduction("scatter_reduce_mean", ScatterReduction::Mean, self, {sum.change, true, self, 0}, floating_types());
    reduction("scatter_reduce_amax", ScatterReduction::Maximum, self, {larger, false, self, -1e300}, number_types());
    reduction("scatter_reduce_amin", ScatterReduction::Minimum, self, {smaller, false, self, 1e300}, number_types());
  }
  return rows;
}

inline std::vector<Row> index_reduce_rows() {
  Row row = index_row(
      "index_reduce", {{{3, 4}}, {{5}, 0, 2, kInt64, false}, {{5, 4}}},
      [](const std::vector<Tensor>& in) { return index_reduce(in[0], 0, in[1], in[2], ScatterReduction::Maximum); },
      [](const std::vector<Tensor>& in) {
        std::vector<double> out = values_of(in[0]);
        const std::vector<double> index = values_of(in[1]), source = values_of(in[2]);
        for (size_t i = 0; i < 5; ++i)
          for (size_t j = 0; j < 4; ++j) {
            double& to = out[static_cast<size_t>(index[i]) * 4 + j];
            to = std::max(to, source[i * 4 + j]);
          }
        return make({3, 4}, kFloat64, out);
      });
  row.inplace = [](const std::vector<Tensor>& in) { index_reduce_(in[0], 0, in[1], in[2], ScatterReduction::Maximum); };
  return {row};
}

}  // namespace tercel::test
