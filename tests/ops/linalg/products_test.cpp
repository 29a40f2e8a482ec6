#include "tercel/ops/linalg/products.h"

#include "tercel/ops/factories/factories.h"
#include "tests/ops/conformance.h"
#include "tests/ops/linalg/products_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Products, Conformance, ::testing::ValuesIn(products_rows()), row_name);

TEST(Products, Integers) {
  const Tensor a = make({3}, kInt64, {1, 2, 3}), b = make({3}, kInt64, {4, 5, 6});
  EXPECT_EQ(values_of(dot(a, b)), (std::vector<double>{32}));
  EXPECT_EQ(dot(make({1}, kInt32, {2}), make({1}, kInt32, {3})).dtype(), kInt32);
  EXPECT_EQ(values_of(outer(a, make({2}, kFloat32, {0.5, 2}))), (std::vector<double>{0.5, 2, 1, 4, 1.5, 6}));
  EXPECT_EQ(values_of(addr(make({1}, kInt64, {1}), a, b, 2, 3)),
            (std::vector<double>{14, 17, 20, 26, 32, 38, 38, 47, 56}));
  EXPECT_EQ(values_of(kron(a, make({2}, kInt64, {1, 10}))), (std::vector<double>{1, 10, 2, 20, 3, 30}));
  EXPECT_EQ(values_of(cross(a, b)), (std::vector<double>{-3, 6, -3}));
}

TEST(Products, MatrixPower) {
  const Tensor a = make({2, 2}, kFloat64, {2, 1, 1, 1});
  EXPECT_EQ(values_of(matrix_power(a, 0)), (std::vector<double>{1, 0, 0, 1}));
  EXPECT_EQ(values_of(matrix_power(a, 1)), values_of(a));
  EXPECT_EQ(values_of(matrix_power(a, 10)), (std::vector<double>{10946, 6765, 6765, 4181}));
  const std::vector<double> inverse = values_of(matrix_power(a, -2));
  const std::vector<double> want = {2, -3, -3, 5};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(inverse[i], want[i], 1e-12);
  TERCEL_EXPECT_THROW(matrix_power(empty({2, 3}), 2), RuntimeError,
                      "A must be batches of square matrices, but they are 2 by 3 matrices");
}

TEST(Products, LongChainsAreMultipliedInTheCheapestOrder) {
  // From the left: a product with 10^8 elements.
  const Tensor a = random({10000, 1}, kFloat32, -1, 1, 1), b = random({1, 10000}, kFloat32, -1, 1, 2),
               c = random({10000, 1}, kFloat32, -1, 1, 3);
  EXPECT_EQ(chain_matmul({a, b, c}).sizes(), IntSpan({10000, 1}));
  EXPECT_TRUE(chain_matmul({a}).is_same(a));
}

TEST(Products, WeightsOfCovariances) {
  const Tensor x = make({2, 3}, kFloat64, {0, 1, 2, 2, 1, 0});
  const Tensor counted = cov(x, 1, make({3}, kInt64, {2, 1, 3}));
  const Tensor repeated = cov(make({2, 6}, kFloat64, {0, 0, 1, 2, 2, 2, 2, 2, 1, 0, 0, 0}));
  const std::vector<double> got = values_of(counted), want = values_of(repeated);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], want[i], 1e-12);
  // numpy.cov(x, aweights=[1, 2, 4])
  EXPECT_NEAR(values_of(cov(x, 1, Tensor(), make({3}, kFloat64, {1, 2, 4})))[0], 0.9285714285714286, 1e-12);
  EXPECT_EQ(cov(make({4}, kInt64, {1, 2, 3, 4})).dim(), 0);
  EXPECT_EQ(cov(make({4}, kInt64, {1, 2, 3, 4})).dtype(), kFloat32);
  TERCEL_EXPECT_THROW(cov(empty({2, 2, 2})), RuntimeError, "expected input to have two or fewer dimensions");
  TERCEL_EXPECT_THROW(cov(x, 1, make({3}, kFloat64, {1, 1, 1})), RuntimeError,
                      "expected fweights to have integral dtype but got fweights with Double dtype");
  TERCEL_EXPECT_THROW(cov(x, 1, make({2}, kInt64, {1, 1})), RuntimeError, "the same numel");
  TERCEL_EXPECT_THROW(cov(x, 1, make({3}, kInt64, {1, -1, 1})), RuntimeError, "fweights cannot be negative");
}

TEST(Products, WrongOperands) {
  const Tensor a = empty({2, 3}), v = empty({3}), d = empty({3}, kFloat64);
  TERCEL_EXPECT_THROW(mv(a, empty({4})), RuntimeError, "size mismatch, got input (2), mat (2x3), vec (4)");
  TERCEL_EXPECT_THROW(mv(v, v), RuntimeError, "vector + matrix @ vector expected, got 1, 1, 1");
  TERCEL_EXPECT_THROW(dot(a, v), RuntimeError, "1D tensors expected, but got 2D and 1D tensors");
  TERCEL_EXPECT_THROW(
      dot(v, empty({4})), RuntimeError,
      "inconsistent tensor size, expected tensor [3] and src [4] to have the same number of elements, but "
      "got 3 and 4 elements respectively");
  TERCEL_EXPECT_THROW(dot(v, d), RuntimeError,
                      "dot : expected both vectors to have same dtype, but found Float and Double");
  TERCEL_EXPECT_THROW(outer(a, v), RuntimeError, "outer: Expected 1-D argument self, but got 2-D");
  TERCEL_EXPECT_THROW(addr(a, v, a), RuntimeError, "addr: Expected 1-D argument vec2, but got 2-D");
  TERCEL_EXPECT_THROW(inner(a, empty({2, 4})), RuntimeError,
                      "inner() the last dimension must match on both input tensors but got shapes [2, 3] and [2, 4]");
  TERCEL_EXPECT_THROW(
      tensordot(a, a, 1), RuntimeError,
      "contracted dimensions need to match, but first has size 3 in dim -1 and second has size 2 in dim 0");
  TERCEL_EXPECT_THROW(tensordot(a, a, {0, 1}, IntSpan({0})), RuntimeError,
                      "both dimension lists should have same length");
  TERCEL_EXPECT_THROW(tensordot(a, a, -1), RuntimeError, "tensordot expects dims >= 0, but got dims=-1");
  TERCEL_EXPECT_THROW(tensordot(a, a, {0, 0}, {0, 1}), RuntimeError, "appears multiple times");
  TERCEL_EXPECT_THROW(cross(a, v), RuntimeError, "linalg.cross: inputs must have the same number of dimensions.");
  TERCEL_EXPECT_THROW(cross(a, a, 0), RuntimeError, "linalg.cross: inputs dimension 0 must have length 3. Got 2 and 2");
  TERCEL_EXPECT_THROW(linalg::multi_dot({a}), RuntimeError, "multi_dot(): expected at least 2 tensors but got 1");
  TERCEL_EXPECT_THROW(linalg::multi_dot({a, v, a}), RuntimeError, "multi_dot(): tensor 1 must be 2D but got 1D");
  TERCEL_EXPECT_THROW(linalg::multi_dot({a, a}), RuntimeError,
                      "multi_dot(): tensors 0 and 1 with shapes [2, 3] and [2, 3] cannot be multiplied");
  TERCEL_EXPECT_THROW(chain_matmul({}), RuntimeError, "chain_matmul(): Expected one or more matrices");
  TERCEL_EXPECT_THROW(bilinear(a, a, empty({4, 3, 5})), RuntimeError, "input2 size does not match weight size: got 3");
  TERCEL_EXPECT_THROW(linalg::vecdot(make({1}, kInt64, {1}), make({1}, kInt64, {1})), RuntimeError, "Got Long");
}

}  // namespace tercel::test
