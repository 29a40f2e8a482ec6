#include "tercel/ops/reduce/var_std.h"

#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/factories/factories.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

namespace tercel::test {

namespace {

using Values = std::vector<double>;
using Tensors = std::vector<Tensor>;

}  // namespace

TEST(VarStd, CorrectionAndUnbiasedAreOne) {
  const Tensor x = make({4}, kFloat64, {1, 2, 3, 6});
  EXPECT_DOUBLE_EQ(var(x).item<double>(), 14 / 3.);
  EXPECT_DOUBLE_EQ(var(x, {}, false).item<double>(), 3.5);
  EXPECT_DOUBLE_EQ(var(x, {0}, 2).item<double>(), 7);
  EXPECT_DOUBLE_EQ(std(x, {0}, 0, true).item<double>(), std::sqrt(3.5));
  const VarAndMean both = var_mean(x, {0}, 0);
  EXPECT_EQ(both.mean.item<double>(), 3);
  EXPECT_EQ(both.var.item<double>(), 3.5);
  EXPECT_EQ(std_mean(make({2, 2}, kFloat32, {1, 3, 5, 5}), {1}, 0, true).std.sizes().to_vector(),
            (std::vector<int64_t>{2, 1}));
}

TEST(VarStd, OfNothingAreNan) {
  for (const Tensor& t : {var(zeros({0})), std(zeros({0})), std(zeros({1})), std(scalar_tensor(2.5))})
    EXPECT_TRUE(std::isnan(t.item<double>()));
  EXPECT_EQ(std(zeros({0, 3}), {1}).numel(), 0);
  EXPECT_TRUE(std::isnan(values_of(std(zeros({0, 3}), {0}))[2]));
  EXPECT_EQ(var(zeros({1}), {}, 0).item<double>(), 0);
}

TEST(VarStd, SixteenBitFloatsAreCalculatedInFloat32) {
  // 300 squared is more than float16 holds.
  EXPECT_EQ(std(make({2}, kFloat16, {-300, 300}), {}, 0).item<double>(), 300);
}

TEST(VarStd, GradientOfAConstantIsZero) {
  Tensor x = make({3}, kFloat64, {2, 2, 2});
  x.requires_grad_();
  const Tensor out = std(x);
  EXPECT_EQ(values_of(grad(Span<Tensor>(&out, 1), Span<Tensor>(&x, 1))[0].values), (Values{0, 0, 0}));
  Tensor y = random({3, 4}, kFloat64, -1, 1, 3);
  y.requires_grad_();
  EXPECT_TRUE(gradcheck([](const Tensors& in) { return std(in[0], {1}, 0.5); }, {y}));
}

TEST(VarStd, Errors) {
  EXPECT_EQ(message_of<RuntimeError>([] { var(zeros({2}, kInt64)); }),
            "std and var only support floating point and complex dtypes");
  EXPECT_EQ(message_of<RuntimeError>([] { std_mean(zeros({2}, kInt64)); }),
            "std_mean only support floating point and complex dtypes");
  EXPECT_THROW(std(zeros({2}), {1}), IndexError);
}

}  // namespace tercel::test
