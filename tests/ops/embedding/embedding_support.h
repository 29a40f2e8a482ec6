// Shared by tests of embedding lookups.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/embedding/embedding_bag.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** embedding_bag by loops over doubles: weight [rows, dim], indices, bag offsets, weights of indices. */
inline Tensor bag_reference(const Tensor& weight, const Tensor& indices, const Sizes& starts, BagMode mode,
                            const Tensor& index_weights = {}, int64_t padding = -1) {
  const std::vector<double> table = values_of(weight), index = values_of(indices);
  const std::vector<double> factor =
      index_weights.defined() ? values_of(index_weights) : std::vector<double>(index.size(), 1);
  const size_t dim = static_cast<size_t>(weight.size(1)), bags = starts.size();
  std::vector<double> out(bags * dim, 0.0);
  for (size_t b = 0; b < bags; ++b) {
    const size_t end = b + 1 < bags ? static_cast<size_t>(starts[b + 1]) : index.size();
    double count = 0;
    for (size_t i = static_cast<size_t>(starts[b]); i < end; ++i) {
      if (static_cast<int64_t>(index[i]) == padding) continue;
      ++count;
      for (size_t c = 0; c < dim; ++c) {
        const double value = factor[i] * table.at(static_cast<size_t>(index[i]) * dim + c);
        double& sum = out[b * dim + c];
        sum = mode != BagMode::Max ? sum + value : count == 1 ? value : std::max(sum, value);
      }
    }
    if (mode == BagMode::Mean && count > 0)
      for (size_t c = 0; c < dim; ++c) out[b * dim + c] /= count;
  }
  return make({static_cast<int64_t>(bags), weight.size(1)}, kFloat64, out);
}

inline Sizes each_its_own(int64_t n) {
  Sizes starts;
  for (int64_t i = 0; i < n; ++i) starts.push_back(i);
  return starts;
}

inline Tensor int_tensor(const Sizes& values, ScalarType dtype = kInt64) {
  return make({static_cast<int64_t>(values.size())}, dtype, std::vector<double>(values.begin(), values.end()));
}

inline Tensor random_table(int64_t rows, int64_t dim) { return random({rows, dim}, kFloat32, -1, 1, 7); }

inline Gradient gradient_of_sum(const Tensor& out, const Tensor& weight) {
  const Tensor ones =
      make(out.sizes().to_vector(), out.dtype(), std::vector<double>(static_cast<size_t>(out.numel()), 1));
  return grad(Span<Tensor>(&out, 1), Span<Tensor>(&weight, 1), Span<Tensor>(&ones, 1))[0];
}

}  // namespace tercel::test
