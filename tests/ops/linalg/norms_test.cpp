#include <limits>

#include "tercel/ops/linalg/linalg.h"
#include "tests/ops/linalg/linalg_support.h"
#include "tests/support/errors.h"

namespace tercel::test {

namespace {

using Tensors = std::vector<Tensor>;
constexpr double kInf = std::numeric_limits<double>::infinity();

double plain_norm(const std::vector<double>& x, double p) {
  double sum = 0, least = kInf, most = 0;
  for (const double v : x) {
    sum += p == 0 ? (v != 0 ? 1.0 : 0.0) : std::pow(std::abs(v), p);
    least = std::min(least, std::abs(v));
    most = std::max(most, std::abs(v));
  }
  if (p == kInf) return most;
  if (p == -kInf) return least;
  return p == 0 ? sum : std::pow(sum, 1 / p);
}

}  // namespace

TEST(LinalgNorms, Vectors) {
  const Tensor x = matrices({3, 4});
  for (const double p : {0.0, 0.5, 1.0, 1.7, 2.0, 3.0, kInf, -kInf, -1.0, -2.0}) {
    EXPECT_NEAR(values_of(linalg::vector_norm(x, p))[0], plain_norm(values_of(x), p), 1e-12) << p;
    const Tensor rows = linalg::vector_norm(x, p, IntSpan({1}));
    EXPECT_EQ(rows.sizes(), IntSpan({3}));
    EXPECT_NEAR(values_of(rows)[1], plain_norm(values_of(x.select(0, 1)), p), 1e-12) << p;
    EXPECT_EQ(linalg::vector_norm(x, p, IntSpan({-1}), true).sizes(), IntSpan({3, 1}));
    EXPECT_EQ(linalg::vector_norm(x, p, {}, true).sizes(), IntSpan({1, 1}));
    EXPECT_EQ(linalg::vector_norm(make({}, kFloat64, {-2}), p).dim(), 0);
    if (p == 0) continue;
    EXPECT_TRUE(gradients_agree([p](const Tensors& in) { return linalg::vector_norm(in[0], p, IntSpan({0})); }, {x}))
        << p;
  }
  EXPECT_EQ(linalg::vector_norm(matrices({3}, kFloat32), 2, {}, false, kFloat64).dtype(), kFloat64);
  EXPECT_EQ(values_of(linalg::vector_norm(empty({2, 0}), 3, IntSpan({1}))), std::vector<double>(2, 0));
}

TEST(LinalgNorms, Matrices) {
  const Tensor a = make({2, 2}, kFloat64, {1, -2, 3, 4});
  EXPECT_EQ(values_of(linalg::matrix_norm(a, 1.0))[0], 6);
  EXPECT_EQ(values_of(linalg::matrix_norm(a, -1.0))[0], 4);
  EXPECT_EQ(values_of(linalg::matrix_norm(a, kInf))[0], 7);
  EXPECT_EQ(values_of(linalg::matrix_norm(a, -kInf))[0], 3);
  EXPECT_NEAR(values_of(linalg::matrix_norm(a))[0], std::sqrt(30.0), 1e-14);
  // The singular values are the roots of 15 +- sqrt(125).
  const double large = std::sqrt(15 + std::sqrt(125.0)), small = std::sqrt(15 - std::sqrt(125.0));
  EXPECT_NEAR(values_of(linalg::matrix_norm(a, 2.0))[0], large, 1e-13);
  EXPECT_NEAR(values_of(linalg::matrix_norm(a, -2.0))[0], small, 1e-13);
  EXPECT_NEAR(values_of(linalg::matrix_norm(a, "nuc"))[0], large + small, 1e-13);
  const Tensor batch = matrices({3, 4, 5});
  for (const double p : {1.0, -1.0, 2.0, -2.0, kInf, -kInf}) {
    const Tensor out = linalg::matrix_norm(batch, p, {0, 2});
    EXPECT_EQ(out.sizes(), IntSpan({4}));
    EXPECT_NEAR(values_of(out)[2], values_of(linalg::matrix_norm(batch.select(1, 2), p))[0], 1e-12);
    EXPECT_EQ(linalg::matrix_norm(batch, p, {0, 2}, true).sizes(), IntSpan({1, 4, 1}));
    EXPECT_TRUE(gradients_agree([p](const Tensors& in) { return linalg::matrix_norm(in[0], p, {2, 0}); }, {batch}));
  }
  EXPECT_EQ(linalg::matrix_norm(batch, "nuc", {0, 2}, true).sizes(), IntSpan({1, 4, 1}));
  EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::matrix_norm(in[0], "nuc"); }, {batch}));
  EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::matrix_norm(in[0]); }, {batch}));
}

TEST(LinalgNorms, Norm) {
  const Tensor a = matrices({3, 4}), x = matrices({2, 3, 4});
  EXPECT_NEAR(values_of(linalg::norm(x))[0], plain_norm(values_of(x), 2), 1e-13);
  expect_close(linalg::norm(a, 1.0), linalg::matrix_norm(a, 1.0), 0);
  expect_close(linalg::norm(a, 3.0, IntSpan({1})), linalg::vector_norm(a, 3, IntSpan({1})), 0);
  expect_close(linalg::norm(x, "fro", {1, 2}), linalg::matrix_norm(x), 0);
  TERCEL_EXPECT_THROW(linalg::norm(x, 2.0), RuntimeError,
                      "If dim is not specified but ord is, the input must be 1D or 2D. Got 3D.");
  TERCEL_EXPECT_THROW(linalg::norm(x, std::nullopt, {0, 1, 2}), RuntimeError,
                      "it must be of length 1 or 2. Got [0, 1, 2]");
}

TEST(LinalgNorms, Condition) {
  const Tensor a = make({2, 2}, kFloat64, {4, 0, 0, 0.5}), singular = make({2, 2}, kFloat64, {1, 2, 2, 4});
  for (const double p : {1.0, 2.0, kInf}) EXPECT_NEAR(values_of(linalg::cond(a, p))[0], 8, 1e-12);
  EXPECT_NEAR(values_of(linalg::cond(a))[0], 8, 1e-12);
  EXPECT_NEAR(values_of(linalg::cond(a, -2.0))[0], 0.125, 1e-13);
  EXPECT_NEAR(values_of(linalg::cond(a, "fro"))[0], std::sqrt(16.25) * std::sqrt(4.0625), 1e-12);
  EXPECT_EQ(values_of(linalg::cond(singular, 1.0))[0], kInf);
  EXPECT_EQ(linalg::cond(matrices({2, 3, 5})).sizes(), IntSpan({2}));
  EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::cond(in[0], 1.0); }, {matrices({3, 3})}));
  EXPECT_TRUE(gradients_agree([](const Tensors& in) { return linalg::cond(in[0]); }, {matrices({3, 3})}));
  TERCEL_EXPECT_THROW(linalg::cond(matrices({2, 3}), 1.0), RuntimeError, "A must be batches of square matrices");
}

TEST(LinalgNorms, WrongOperands) {
  const Tensor a = empty({2, 2});
  TERCEL_EXPECT_THROW(linalg::vector_norm(empty({2}, kInt64)), RuntimeError,
                      "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long");
  TERCEL_EXPECT_THROW(linalg::vector_norm(empty({0}), kInf), RuntimeError,
                      "linalg.vector_norm cannot compute the inf norm on an empty tensor");
  TERCEL_EXPECT_THROW(linalg::matrix_norm(a, 3.0), RuntimeError, "linalg.matrix_norm: Order 3 not supported.");
  TERCEL_EXPECT_THROW(linalg::matrix_norm(a, "two"), RuntimeError, "linalg.matrix_norm: Order two not supported.");
  TERCEL_EXPECT_THROW(linalg::matrix_norm(a, 1.0, {0, -2}), RuntimeError, "dims must be different. Got (0, -2)");
  TERCEL_EXPECT_THROW(linalg::matrix_norm(empty({2})), RuntimeError, "must have at least 2 dimensions");
  TERCEL_EXPECT_THROW(linalg::vector_norm(a, 2, {}, false, kFloat16), RuntimeError, "without narrowing");
}

}  // namespace tercel::test
