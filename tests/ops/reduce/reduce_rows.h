// Conformance rows of reductions; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/var_std.h"
#include "tercel/ops/reduce/vector_norms.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** Applies f to the elements along dims (all if none), by loops over doubles. */
inline Tensor reduce_reference(const Tensor& x, const Sizes& given, bool keepdim,
                               const std::function<double(const std::vector<double>&)>& f) {
  const Sizes sizes = x.sizes().to_vector();
  std::vector<bool> reduced(sizes.size(), given.empty());
  for (const int64_t d : given) reduced[static_cast<size_t>(wrap_dim(d, x.dim()))] = true;
  Sizes kept;
  int64_t outputs = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!reduced[d]) outputs *= sizes[d];
    if (!reduced[d] || keepdim) kept.push_back(reduced[d] ? 1 : sizes[d]);
  }
  std::vector<std::vector<double>> groups(static_cast<size_t>(outputs));
  const std::vector<double> values = values_of(x);
  Sizes index(sizes.size(), 0);
  for (const double v : values) {
    int64_t group = 0;
    for (size_t d = 0; d < sizes.size(); ++d)
      if (!reduced[d]) group = group * sizes[d] + index[d];
    groups[static_cast<size_t>(group)].push_back(v);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
  std::vector<double> out;
  for (const std::vector<double>& group : groups) out.push_back(f(group));
  return make(kept, kFloat64, out);
}

inline double sum_of(const std::vector<double>& v) {
  long double sum = 0;
  for (const double x : v) sum += x;
  return static_cast<double>(sum);
}
inline double mean_of(const std::vector<double>& v) { return sum_of(v) / static_cast<double>(v.size()); }
inline double prod_of(const std::vector<double>& v) {
  double product = 1;
  for (const double x : v) product *= x;
  return product;
}
inline double var_of(const std::vector<double>& v) {
  const double mean = mean_of(v);
  double sum = 0;
  for (const double x : v) sum += (x - mean) * (x - mean);
  return sum / static_cast<double>(v.size() - 1);
}
inline double count_nonzero_of(const std::vector<double>& v) {
  return static_cast<double>(std::count_if(v.begin(), v.end(), [](double x) { return x != 0; }));
}
inline double any_of(const std::vector<double>& v) {
  return std::any_of(v.begin(), v.end(), [](double x) { return x != 0; }) ? 1 : 0;
}
inline double all_of(const std::vector<double>& v) {
  return std::all_of(v.begin(), v.end(), [](double x) { return x != 0; }) ? 1 : 0;
}
inline double max_of(const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); }
inline double min_of(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }
inline double argmax_of(const std::vector<double>& v) {
  return static_cast<double>(std::max_element(v.begin(), v.end()) - v.begin());
}
inline double argmin_of(const std::vector<double>& v) {
  return static_cast<double>(std::min_element(v.begin(), v.end()) - v.begin());
}
inline double norm1_of(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += std::abs(x);
  return sum;
}
inline double norm2_of(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}
inline double norm_inf_of(const std::vector<double>& v) {
  double best = 0;
  for (const double x : v) best = std::max(best, std::abs(x));
  return best;
}

inline double std_of(const std::vector<double>& v) { return std::sqrt(var_of(v)); }
inline double population_std_of(const std::vector<double>& v) {
  return std::sqrt(var_of(v) * static_cast<double>(v.size() - 1) / static_cast<double>(v.size()));
}
template <int kPower>  // in quarters
double norm_power_of(const std::vector<double>& v) {
  const double p = kPower / 4.0;
  double sum = 0;
  for (const double x : v) sum += std::pow(std::abs(x), p);
  return std::pow(sum, 1 / p);
}
inline double norm_smallest_of(const std::vector<double>& v) {
  double best = HUGE_VAL;
  for (const double x : v) best = std::min(best, std::abs(x));
  return best;
}
inline double logsumexp_of(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += std::exp(x);
  return std::log(sum);
}

using Reducer = double (*)(const std::vector<double>&);

inline Row reduce_row(const std::string& name, const Sizes& sizes, const Sizes& dims, bool keepdim, Function run,
                      Reducer f, std::vector<ScalarType> dtypes) {
  Row row;
  row.name = name;
  row.inputs = {{sizes}};
  row.run = std::move(run);
  row.reference = [dims, keepdim, f](const std::vector<Tensor>& in) {
    return reduce_reference(in[0], dims, keepdim, f);
  };
  row.dtypes = std::move(dtypes);
  row.bitwise = false;
  row.scale = 60;
  return row;
}

/** Columns of [5, 6] scaled down to a 2-norm of 3. */
inline Row renorm_row() {
  Row row;
  row.name = "renorm";
  row.inputs = {{{5, 6}}};
  row.run = [](const std::vector<Tensor>& in) { return renorm(in[0], 2, 1, 3); };
  row.inplace = [](const std::vector<Tensor>& in) { renorm_(in[0], 2, 1, 3); };
  row.reference = [](const std::vector<Tensor>& in) {
    std::vector<double> v = values_of(in[0]);
    for (size_t c = 0; c < 6; ++c) {
      std::vector<double> column;
      for (size_t r = 0; r < 5; ++r) column.push_back(v[r * 6 + c]);
      const double scale = std::min(1.0, 3 / norm2_of(column));
      for (size_t r = 0; r < 5; ++r) v[r * 6 + c] *= scale;
    }
    return make({5, 6}, kFloat64, v);
  };
  row.ulps = 16;
  // The margin that keeps norms below the bound is 1e-7 of them.
  row.scale = 4;
  row.dtypes = {kFloat32, kFloat16, kBFloat16};
  row.bitwise = false;
  return row;
}

inline std::vector<Row> reduce_rows() {
  using Tensors = std::vector<Tensor>;
  const std::vector<ScalarType> all = all_types();
  const std::vector<ScalarType>& floats = floating_types();
  std::vector<Row> rows = {
      reduce_row(
          "sum", {7, 33}, {}, false, [](const Tensors& in) { return sum(in[0]); }, sum_of, all),
      reduce_row(
          "sum_rows", {33, 40}, {1}, false, [](const Tensors& in) { return sum(in[0], {1}); }, sum_of, all),
      reduce_row(
          "sum_columns", {33, 43}, {0}, true, [](const Tensors& in) { return sum(in[0], {0}, true); }, sum_of, all),
      reduce_row(
          "sum_outer_and_inner", {5, 6, 19}, {0, -1}, false,
          [](const Tensors& in) {
            return sum(in[0], {0, -1});
          },
          sum_of, all),
      reduce_row(
          "sum_middle", {4, 9, 21}, {1}, true, [](const Tensors& in) { return sum(in[0], {1}, true); }, sum_of, all),
      reduce_row(
          "sum_few_columns", {4301, 3}, {0}, false, [](const Tensors& in) { return sum(in[0], {0}); }, sum_of, floats),
      reduce_row(
          "sum_short_rows", {700, 5}, {1}, false, [](const Tensors& in) { return sum(in[0], {1}); }, sum_of, floats),
      reduce_row(
          "mean", {9, 40}, {}, false, [](const Tensors& in) { return mean(in[0]); }, mean_of, floats),
      reduce_row(
          "mean_rows", {9, 40}, {-1}, true, [](const Tensors& in) { return mean(in[0], {-1}, true); }, mean_of, floats),
      reduce_row(
          "prod", {3, 4}, {}, false, [](const Tensors& in) { return prod(in[0]); }, prod_of, all),
      reduce_row(
          "prod_columns", {5, 17}, {0}, false, [](const Tensors& in) { return prod(in[0], {0}); }, prod_of, all),
      reduce_row(
          "var", {9, 20}, {1}, false, [](const Tensors& in) { return var(in[0], {1}); }, var_of, floats),
      reduce_row(
          "std", {9, 20}, {1}, true, [](const Tensors& in) { return std(in[0], {1}, 1, true); }, std_of, floats),
      reduce_row(
          "std_mean_columns", {20, 9}, {0}, false, [](const Tensors& in) { return std_mean(in[0], {0}, false).std; },
          population_std_of, floats),
      reduce_row(
          "var_mean", {5, 8}, {}, false, [](const Tensors& in) { return var_mean(in[0]).var; }, var_of, floats),
      reduce_row(
          "nansum", {7, 33}, {1}, false, [](const Tensors& in) { return nansum(in[0], {1}); }, sum_of, all),
      reduce_row(
          "nanmean", {9, 40}, {}, false, [](const Tensors& in) { return nanmean(in[0]); }, mean_of, floats),
      reduce_row(
          "logsumexp", {6, 21, 5}, {0, 2}, true,
          [](const Tensors& in) {
            return logsumexp(in[0], {0, 2}, true);
          },
          logsumexp_of, floats),
      reduce_row(
          "logsumexp_rows", {6, 21}, {1}, false, [](const Tensors& in) { return logsumexp(in[0], {1}); }, logsumexp_of,
          floats),
      reduce_row(
          "aminmax_max", {6, 21}, {1}, true, [](const Tensors& in) { return aminmax(in[0], 1, true).max; }, max_of,
          all),
      reduce_row(
          "aminmax_min", {6, 21}, {}, false, [](const Tensors& in) { return aminmax(in[0]).min; }, min_of, all),
      reduce_row(
          "max", {7, 33}, {}, false, [](const Tensors& in) { return max(in[0]); }, max_of, all),
      reduce_row(
          "min", {7, 33}, {}, false, [](const Tensors& in) { return min(in[0]); }, min_of, all),
      reduce_row(
          "amax", {6, 21, 5}, {0, 2}, true,
          [](const Tensors& in) {
            return amax(in[0], {0, 2}, true);
          },
          max_of, all),
      reduce_row(
          "amin", {6, 21}, {0}, false, [](const Tensors& in) { return amin(in[0], {0}); }, min_of, all),
      reduce_row(
          "max_rows", {9, 37}, {1}, false, [](const Tensors& in) { return max(in[0], 1).values; }, max_of, all),
      reduce_row(
          "max_columns", {9, 37}, {0}, true, [](const Tensors& in) { return max(in[0], 0, true).values; }, max_of, all),
      reduce_row(
          "min_middle", {4, 9, 21}, {1}, false, [](const Tensors& in) { return min(in[0], 1).values; }, min_of, all),
      reduce_row(
          "argmax", {9, 37}, {}, false, [](const Tensors& in) { return argmax(in[0]); }, argmax_of, all),
      reduce_row(
          "argmax_rows", {9, 1200}, {1}, false, [](const Tensors& in) { return argmax(in[0], 1); }, argmax_of, all),
      reduce_row(
          "argmin_columns", {40, 37}, {0}, true, [](const Tensors& in) { return argmin(in[0], 0, true); }, argmin_of,
          all),
      reduce_row(
          "count_nonzero", {5, 90}, {}, false, [](const Tensors& in) { return count_nonzero(in[0]); }, count_nonzero_of,
          all),
      reduce_row(
          "count_nonzero_rows", {9, 41}, {1}, true, [](const Tensors& in) { return count_nonzero(in[0], {1}, true); },
          count_nonzero_of, all),
      reduce_row(
          "any", {5, 9}, {}, false, [](const Tensors& in) { return any(in[0]); }, any_of, all),
      reduce_row(
          "any_rows", {40, 2}, {1}, false, [](const Tensors& in) { return any(in[0], {1}); }, any_of, all),
      reduce_row(
          "all", {5, 9}, {}, false, [](const Tensors& in) { return tercel::all(in[0]); }, all_of, all),
      reduce_row(
          "all_columns", {2, 40}, {0}, true, [](const Tensors& in) { return tercel::all(in[0], {0}, true); }, all_of,
          all),
      reduce_row(
          "norm1", {6, 40}, {1}, false, [](const Tensors& in) { return norm(in[0], 1, {1}); }, norm1_of, floats),
      reduce_row(
          "norm2", {6, 40}, {0}, true, [](const Tensors& in) { return norm(in[0], 2, {0}, true); }, norm2_of, floats),
      reduce_row(
          "norm_three", {6, 40}, {1}, false, [](const Tensors& in) { return norm(in[0], 3, {1}); }, norm_power_of<12>,
          floats),
      reduce_row(
          "norm_one_and_a_half", {6, 40}, {0}, true, [](const Tensors& in) { return norm(in[0], 1.5, {0}, true); },
          norm_power_of<6>, floats),
      reduce_row(
          "norm_smallest", {6, 40}, {1}, false, [](const Tensors& in) { return norm(in[0], -HUGE_VAL, {1}); },
          norm_smallest_of, floats),
      reduce_row(
          "norm_infinity", {6, 40}, {}, false, [](const Tensors& in) { return norm(in[0], HUGE_VAL); }, norm_inf_of,
          floats),
  };
  rows.push_back(renorm_row());
  for (Row& row : rows) {
    const bool exact = row.name.find("max") != std::string::npos || row.name.find("min") != std::string::npos;
    if (exact) {
      row.bitwise = true;
      row.ulps = row.scale = 0;
    }
    if (row.name.starts_with("any") || row.name.starts_with("all") || row.name.starts_with("count")) {
      row.inputs[0].low = 0;
      row.inputs[0].high = 1;
      row.differentiable = false;
    }
    if (row.name.starts_with("arg")) row.differentiable = false;
    if (row.name.starts_with("sum") || row.name.starts_with("mean")) add_reference_by_parts(row);
    if (row.name.starts_with("prod")) row.inputs[0].low = 0.5, row.inputs[0].high = 1.75;
    if (row.name == "sum_few_columns") row.gradient_sizes = {{40, 3}};
    if (row.name == "argmax_rows") row.inputs[0].high = 120;
  }
  return rows;
}

}  // namespace tercel::test
