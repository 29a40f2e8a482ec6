#include "tercel/ops/loss.h"

#include "tercel/autograd/autograd.h"
#include "tests/ops/conformance.h"
#include "tests/ops/loss_rows.h"

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
