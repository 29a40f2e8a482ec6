#include "tercel/ops/nn/loss.h"

#include "tercel/autograd/autograd.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/loss_rows.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Loss, Conformance, ::testing::ValuesIn(loss_rows()), row_name);

TEST(BinaryCrossEntropy, LargeLogitsStayExact) {
  const Tensor x = make({6}, kFloat32, {100, -100, 100, -100, -30, 1e30});
  const Tensor y = make({6}, kFloat32, {1, 0, 0, 1, 0, 1});
  const std::vector<double> got = values_of(binary_cross_entropy_with_logits(x, y, {}, Reduction::None));
  const std::vector<double> want = {3.7200759760208e-44, 3.7200759760208e-44, 100, 100, 9.3576229688393e-14, 0};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6 * want[i] + 2e-45) << i;
}

TEST(BinaryCrossEntropy, TargetsOfAnyDtype) {
  const Tensor x = make({3}, kFloat32, {1, -2, 0.5});
  const std::string want = bytes_of(binary_cross_entropy_with_logits(x, make({3}, kFloat32, {1, 0, 1})));
  for (const ScalarType t : {kInt64, kBool, kFloat64, kUInt8})
    EXPECT_EQ(bytes_of(binary_cross_entropy_with_logits(x, make({3}, t, {1, 0, 1}))), want) << to_string(t);
}

TEST(BinaryCrossEntropy, GradientIsTheErrorOfTheProbability) {
  Tensor x = make({2, 1}, kFloat32, {0, 0});
  x.requires_grad_();
  binary_cross_entropy_with_logits(x, make({2, 1}, kFloat32, {1, 0})).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{-0.25, 0.25}));
  EXPECT_EQ(x.grad().sizes(), IntSpan({2, 1}));
}

// As in PyTorch: (x - t) / max(x (1 - x), 1e-12).
TEST(BinaryCrossEntropy, GradientOfProbabilitiesThatAreSaturated) {
  const std::vector<double> p = {0, 0, 1, 1, 0.5, 0.25, 0x1p-20}, t = {0, 1, 0, 1, 0.5, 1, 1};
  const std::vector<double> want = {0, -1e12, 1e12, 0, 0, -4, -0x1p20};
  for (const ScalarType dtype : {kFloat32, kFloat64, kBFloat16, kFloat16}) {
    Tensor x = make({7}, dtype, p);
    x.requires_grad_();
    const Tensor losses = binary_cross_entropy(x, make({7}, dtype, t), {}, Reduction::None);
    EXPECT_EQ(values_of(losses)[0], 0);
    EXPECT_EQ(values_of(losses)[1], 100);
    losses.sum().backward();
    const std::vector<double> got = values_of(x.grad());
    const double largest = dtype == kFloat16 ? 65504 : 1e30, precision = dtype == kBFloat16 ? 0.01 : 1e-3;
    for (size_t i = 0; i < want.size(); ++i) {
      if (std::abs(want[i]) > largest)
        EXPECT_TRUE(std::isinf(got[i])) << to_string(dtype) << " " << i;
      else
        EXPECT_NEAR(got[i], want[i], precision * std::abs(want[i])) << to_string(dtype) << " " << i;
    }
  }
  // Of a mean with weights, and of the target.
  Tensor x = make({2}, kFloat64, {1, 0.5}), target = make({2}, kFloat64, {1, 0.25});
  x.requires_grad_();
  target.requires_grad_();
  binary_cross_entropy(x, target, make({2}, kFloat64, {4, 8})).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{0, 4}));
  EXPECT_EQ(values_of(target.grad())[1], 0);
}

TEST(BinaryCrossEntropy, WrongOperands) {
  const Tensor x = empty({2, 1});
  EXPECT_THROW(binary_cross_entropy_with_logits(x, empty({2})), RuntimeError);
  EXPECT_THROW(binary_cross_entropy_with_logits(empty({2}, kInt64), empty({2})), RuntimeError);
  EXPECT_THROW(binary_cross_entropy_with_logits(x, x, empty({3, 1})), RuntimeError);
  EXPECT_THROW(mse_loss(x, empty({1})), RuntimeError);
  EXPECT_TRUE(std::isnan(values_of(binary_cross_entropy_with_logits(empty({0}), empty({0})))[0]));
}

TEST(Reduction, Names) {
  EXPECT_EQ(to_string(Reduction::Mean), "mean");
  EXPECT_EQ(parse_enum_or_throw<Reduction>("reduction", "sum"), Reduction::Sum);
  EXPECT_THROW(parse_enum_or_throw<Reduction>("reduction", "average"), ConfigError);
}

}  // namespace tercel::test
