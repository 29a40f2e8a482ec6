#include "tercel/ops/nn/cross_entropy.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/cross_entropy_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(CrossEntropyLosses, Conformance, ::testing::ValuesIn(cross_entropy_rows()), row_name);

TEST(CrossEntropy, PixelsAndSingleSamples) {
  const Tensor x = random({2, 4, 3, 5}, kFloat32, -2, 2, 1), t = random({2, 3, 5}, kInt64, 0, 3, 2);
  const std::vector<double> losses = values_of(cross_entropy(x, t, {}, Reduction::None));
  double sum = 0;
  for (const double v : losses) sum += v;
  EXPECT_NEAR(values_of(cross_entropy(x, t))[0], sum / 30, 1e-5);
  const Tensor single = make({3}, kFloat32, {1, 2, 3});
  EXPECT_NEAR(values_of(cross_entropy(single, make({}, kInt64, {2})))[0], 0.40760597, 1e-6);
}

TEST(CrossEntropy, IgnoredRowsHaveNoGradientWhateverTheyHold) {
  Tensor x = make({2, 2}, kFloat32, {1, 2, std::nan(""), INFINITY}).requires_grad_();
  cross_entropy(x, make({2}, kInt64, {0, -100}), {}, Reduction::Sum).backward();
  EXPECT_NEAR(values_of(x.grad())[0], -0.7310586, 1e-6);
  EXPECT_TRUE(std::isnan(values_of(cross_entropy(x, make({2}, kInt64, {-100, -100})))[0]));
}

TEST(CrossEntropyLosses, Errors) {
  const Tensor x = zeros({2, 3});
  TERCEL_EXPECT_THROW(cross_entropy(x, make({2}, kInt64, {0, 5})), IndexError, "Target 5 is out of bounds.");
  TERCEL_EXPECT_THROW(cross_entropy(x, make({3}, kInt64, {0, 1, 2})), ValueError,
                      "Expected input batch_size (2) to match target batch_size (3).");
  TERCEL_EXPECT_THROW(cross_entropy(x, zeros({2})), RuntimeError, "expected scalar type Long but found");
  TERCEL_EXPECT_THROW(cross_entropy(x, zeros({2, 3}, kInt64)), RuntimeError,
                      "Expected floating point type for target with class probabilities");
  TERCEL_EXPECT_THROW(cross_entropy(x, make({2}, kInt64, {0, 1}), zeros({2})), RuntimeError,
                      "weight tensor should be defined either for all 3 classes or no classes");
  TERCEL_EXPECT_THROW(cross_entropy(x, make({2}, kInt64, {0, 1}), {}, Reduction::Mean, -100, 2), RuntimeError,
                      "label_smoothing must be between 0.0 and 1.0. Got: 2");
  TERCEL_EXPECT_THROW(binary_cross_entropy(make({1}, kFloat32, {2}), make({1}, kFloat32, {1})), RuntimeError,
                      "all elements of input should be between 0 and 1");
  TERCEL_EXPECT_THROW(triplet_margin_loss(x, x, x, 0), ValueError, "margin must be greater than 0");
}

}  // namespace tercel::test
