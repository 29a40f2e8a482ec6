// Shared by tests of linear algebra.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/views/views.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

namespace tercel::test {

inline void expect_close(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.sizes(), want.sizes());
  ASSERT_EQ(got.is_complex(), want.is_complex());
  const auto g = complex_values_of(got), w = complex_values_of(want);
  for (size_t i = 0; i < g.size(); ++i) {
    ASSERT_NEAR(g[i].real(), w[i].real(), tolerance) << "element " << i;
    ASSERT_NEAR(g[i].imag(), w[i].imag(), tolerance) << "element " << i;
  }
}

inline double tolerance_of(ScalarType t) { return real_dtype(t) == kFloat32 ? 2e-4 : 1e-11; }

inline Tensor matrices(const Sizes& sizes, ScalarType dtype = kFloat64, uint64_t seed = 1) {
  return random(sizes, dtype, -1, 1, seed);
}
inline Tensor transposed(const Tensor& a) { return transpose(a, -2, -1); }
/** a^T a + 1/2: symmetric and positive definite. */
inline Tensor definite(const Sizes& sizes, ScalarType dtype = kFloat64, uint64_t seed = 1) {
  const Tensor a = matrices(sizes, dtype, seed);
  return add(matmul(transposed(a), a), mul(eye(sizes.back(), -1, TensorOptions(dtype)), 0.5));
}
inline Tensor symmetric(const Tensor& a) { return mul(add(a, transposed(a)), 0.5); }
/** The identity of a's last dimension, broadcast to its batch. */
inline Tensor identity_like(const Tensor& a) {
  DimVector sizes(a.sizes());
  sizes[sizes.size() - 2] = sizes.back();
  return expand(eye(sizes.back(), -1, a.options()), sizes);
}

inline ::testing::AssertionResult gradients_agree(const Function& f, std::vector<Tensor> inputs) {
  for (Tensor& t : inputs) t.requires_grad_();
  return gradcheck(f, inputs);
}

/** Batches, wide and tall matrices, in both precisions. */
inline const std::vector<Sizes>& matrix_sizes() {
  static const std::vector<Sizes> all = {{1, 1}, {4, 4}, {3, 5}, {5, 3}, {2, 4, 3}, {2, 3, 3, 4}, {40, 30}};
  return all;
}
inline const std::vector<Sizes>& square_sizes() {
  static const std::vector<Sizes> all = {{1, 1}, {4, 4}, {2, 3, 3}, {2, 3, 5, 5}, {50, 50}};
  return all;
}

}  // namespace tercel::test
