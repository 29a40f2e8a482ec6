// Special values and variants of the elementwise ops of composite.h, special.h and activation.h.
#include "tercel/ops/elementwise/composite.h"

#include <cmath>

#include "tercel/ops/ops.h"
#include "tests/ops/conformance.h"
#include "tests/ops/elementwise/composite_rows.h"
#include "tests/ops/special/special_rows.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Special, Conformance, ::testing::ValuesIn(special_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Composite, Conformance, ::testing::ValuesIn(composite_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Activation, Conformance, ::testing::ValuesIn(activation_rows()), row_name);

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

Tensor doubles(const std::vector<double>& values) {
  return make({static_cast<int64_t>(values.size())}, kFloat64, values);
}
double at(Tensor (*f)(const Tensor&), double x) { return values_of(f(doubles({x})))[0]; }
double at(Tensor (*f)(const Tensor&, const Tensor&), double a, double b) {
  return values_of(f(doubles({a}), doubles({b})))[0];
}
void expect_close(double got, double want) { EXPECT_NEAR(got, want, 1.2e-15 * std::abs(want)) << want; }

// Values from tables of 20 digits.
TEST(Special, KnownValues) {
  expect_close(at(erfinv, 0.5), 0.47693627620446987338);
  expect_close(at(erfinv, 1 - 0x1p-53), 5.8635847487551675675);
  expect_close(at(erfinv, 1e-300), 8.8622692545275801365e-301);
  expect_close(at(digamma, 1), -0.57721566490153286061);
  EXPECT_NEAR(at(digamma, -0.5), 0.036489973978576520559, 3e-16);  // of terms above 1
  expect_close(at(i0, 1), 1.2660658777520083356);
  expect_close(at(i1, 1), 0.56515910399248502721);
  expect_close(at(special_ndtri, 1e-300), -37.047096299361199237);
  expect_close(values_of(polygamma(1, doubles({1})))[0], 1.6449340668482264365);
  expect_close(values_of(special_zeta(doubles({2}), doubles({1})))[0], 1.6449340668482264365);
  expect_close(at(special_log_ndtr, -50), -1254.8313611394199013);
}

TEST(Special, EndsAndWhatIsNoNumber) {
  EXPECT_EQ(at(erfinv, 1), kInf);
  EXPECT_EQ(at(erfinv, -1), -kInf);
  EXPECT_TRUE(std::isnan(at(erfinv, 1.5)));
  EXPECT_TRUE(std::signbit(at(erfinv, -0.0)));
  EXPECT_EQ(at(digamma, 0), -kInf);
  EXPECT_EQ(at(digamma, -0.0), kInf);
  EXPECT_TRUE(std::isnan(at(digamma, -2)));
  EXPECT_EQ(at(lgamma, -3), kInf);
  EXPECT_EQ(at(sinc, 0), 1);
  EXPECT_EQ(at(special_entr, 0), 0);
  EXPECT_EQ(at(special_entr, -1), -kInf);
  EXPECT_EQ(at(i0, 1000), kInf);
  EXPECT_EQ(at(special_ndtri, 0), -kInf);
  for (const auto f : {+[](const Tensor& x) { return erfinv(x); }, +[](const Tensor& x) { return digamma(x); },
                       +[](const Tensor& x) { return i0(x); }, +[](const Tensor& x) { return sinc(x); },
                       +[](const Tensor& x) { return special_ndtri(x); }, +[](const Tensor& x) { return tan(x); }})
    EXPECT_TRUE(std::isnan(at(f, kNan)));
  EXPECT_EQ(at(xlogy, 0, 0), 0);
  EXPECT_TRUE(std::isnan(at(xlogy, 0, kNan)));
  EXPECT_EQ(at(fmax, kNan, 2), 2);
  EXPECT_EQ(at(fmin, 2, kNan), 2);
  EXPECT_TRUE(std::isnan(at(fmax, kNan, kNan)));
  EXPECT_TRUE(std::isnan(at(heaviside, kNan, 2)));
  EXPECT_EQ(at(logaddexp2, kInf, kInf), kInf);
  EXPECT_EQ(at(logaddexp2, -kInf, -kInf), -kInf);
  EXPECT_EQ(at(nextafter, 0, 1), 0x1p-1074);
  EXPECT_EQ(values_of(nextafter(make({1}, kFloat32, {1}), make({1}, kFloat32, {2})))[0], 1 + 0x1p-23);
  EXPECT_THROW(nextafter(make({1}, kInt64, {1}), make({1}, kInt64, {2})), NotImplementedError);
  EXPECT_EQ(at(igamma, 0, 1), 1);
  EXPECT_EQ(at(igammac, 2, kInf), 0);
  EXPECT_TRUE(std::isnan(at(igamma, -1, 1)));
  EXPECT_THROW(polygamma(-1, doubles({1})), RuntimeError);
  Tensor a = doubles({2});
  EXPECT_THROW(sum(igamma(a.requires_grad_(), doubles({1}))).backward(), NotImplementedError);
}

TEST(Special, IntegersAtTheEnds) {
  EXPECT_EQ(values_of(bitwise_left_shift(make({4}, kInt32, {1, 1, 1, -1}), make({4}, kInt32, {31, 32, -1, 40}))),
            (std::vector<double>{-2147483648.0, 0, 0, 0}));
  EXPECT_EQ(values_of(bitwise_right_shift(make({4}, kInt64, {-8, -8, -8, 8}), make({4}, kInt64, {1, 64, -1, 100}))),
            (std::vector<double>{-4, -1, -1, 0}));
  EXPECT_EQ(bitwise_right_shift(full({1}, Scalar(UINT64_MAX), kUInt64), 63).item<uint64_t>(), 1u);
  EXPECT_EQ(bitwise_right_shift(full({1}, Scalar(UINT64_MAX), kUInt64), 64).item<uint64_t>(), 0u);
  EXPECT_EQ(gcd(full({1}, INT64_MIN, kInt64), full({1}, 6, kInt64)).item<int64_t>(), 2);
  EXPECT_EQ(values_of(lcm(make({2}, kInt64, {0, 4}), make({2}, kInt64, {0, -6}))), (std::vector<double>{0, 12}));
  EXPECT_THROW(gcd(doubles({1}), doubles({1})), NotImplementedError);
}

TEST(Composite, Division) {
  const Tensor a = make({4}, kInt64, {-7, 7, -7, 7}), b = make({4}, kInt64, {2, 2, -2, -2});
  EXPECT_EQ(values_of(div(a, b, "trunc")), (std::vector<double>{-3, 3, 3, -3}));
  EXPECT_EQ(values_of(div(a, b, "floor")), (std::vector<double>{-4, 3, 3, -4}));
  EXPECT_EQ(div(a, b, std::nullopt).dtype(), kFloat32);
  EXPECT_EQ(values_of(div(doubles({-7}), 2, "trunc")), std::vector<double>{-3});
  EXPECT_THROW(div(a, 0, "trunc"), RuntimeError);
  EXPECT_EQ(message_of<RuntimeError>([&] { div(a, b, "up"); }),
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'");
  EXPECT_EQ(float_power(make({1}, kInt64, {3}), 2).dtype(), kFloat64);
  EXPECT_EQ(values_of(rsub(make({2}, kInt64, {1, 2}), 10)), (std::vector<double>{9, 8}));
}

TEST(Composite, Closeness) {
  const Tensor a = doubles({1, kInf, kNan, 0}), b = doubles({1 + 1e-6, kInf, kNan, 1e-9});
  EXPECT_EQ(values_of(isclose(a, b)), (std::vector<double>{1, 1, 0, 1}));
  EXPECT_EQ(values_of(isclose(a, b, 1e-5, 1e-8, true)), (std::vector<double>{1, 1, 1, 1}));
  EXPECT_FALSE(allclose(a, b));
  EXPECT_TRUE(allclose(a, b, 1e-5, 1e-8, true));
  EXPECT_FALSE(allclose(doubles({kInf}), doubles({1e300})));
  EXPECT_TRUE(equal(doubles({1, 2}), doubles({1, 2})));
  EXPECT_FALSE(equal(doubles({1, 2}), doubles({1})));
  EXPECT_FALSE(equal(doubles({kNan}), doubles({kNan})));
  EXPECT_EQ(message_of<RuntimeError>([&] {
              allclose(a, make({4}, kFloat32, {1, 1, 1, 1}));
            }),
            "Double did not match Float");
}

TEST(Composite, SpecialNumbers) {
  const Tensor x = doubles({kInf, -kInf, kNan, -0.0, 1});
  EXPECT_EQ(values_of(isinf(x)), (std::vector<double>{1, 1, 0, 0, 0}));
  EXPECT_EQ(values_of(isposinf(x)), (std::vector<double>{1, 0, 0, 0, 0}));
  EXPECT_EQ(values_of(isneginf(x)), (std::vector<double>{0, 1, 0, 0, 0}));
  EXPECT_EQ(values_of(signbit(x)), (std::vector<double>{0, 1, 0, 1, 0}));
  EXPECT_EQ(values_of(nan_to_num(x, 5, 6, 7)), (std::vector<double>{6, 7, 5, 0, 1}));
  EXPECT_EQ(values_of(nan_to_num(make({1}, kFloat16, {kInf})))[0], 65504);
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(values_of(nan_to_num(x, 5)), (std::vector<double>{most, -most, 5, 0, 1}));
  EXPECT_EQ(values_of(nan_to_num(make({2}, kBFloat16, {-kInf, kNan}), 3)),
            (std::vector<double>{-static_cast<double>(std::numeric_limits<BFloat16>::max()), 3}));
  const Tensor leaf = doubles({kInf, -kInf, kNan, -0.0, 1}).requires_grad_();
  nan_to_num(leaf).sum().backward();
  EXPECT_EQ(values_of(leaf.grad()), (std::vector<double>{0, 0, 0, 1, 1}));
  EXPECT_TRUE(std::isnan(values_of(angle(x))[2]));
  EXPECT_EQ(values_of(isreal(make_complex({2}, kComplex64, {{1, 0}, {0, 1}}))), (std::vector<double>{1, 0}));
}

TEST(Composite, ActivationsOfSpecialNumbers) {
  const Tensor x = doubles({-kInf, kInf, kNan, -3, 3, 1}).requires_grad_();
  const Tensor out = hardswish(x);
  const std::vector<double> y = values_of(out);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[2]));
  EXPECT_EQ((std::vector<double>{y[1], y[3], y[4]}), (std::vector<double>{kInf, 0, 3}));
  out.sum().backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{0, 1, 1, 0, 1, 1.0 / 3 + 0.5}));
  // With a gradient to come and without.
  const Tensor slope = doubles({-0.5}), z = doubles({-kInf, kInf, -0.0, -2, 3});
  EXPECT_EQ(values_of(prelu(z, slope)), values_of(prelu(z, slope.detach().requires_grad_())));
}

TEST(Composite, BoundsThatAreTensors) {
  const Tensor x = doubles({-2, 0, 5, kNan});
  EXPECT_EQ(values_of(clamp(x, doubles({-1}), std::nullopt))[0], -1);
  EXPECT_EQ(values_of(clamp(x, std::nullopt, doubles({1})))[2], 1);
  EXPECT_TRUE(std::isnan(values_of(clamp(x, doubles({-1}), doubles({1})))[3]));
  EXPECT_EQ(values_of(clamp(x, doubles({3}), doubles({1})))[1], 1);
  EXPECT_EQ(message_of<RuntimeError>([&] { clamp(x, std::optional<Tensor>(), std::optional<Tensor>()); }),
            "clamp(): At least one of 'min' or 'max' must not be None");
}

TEST(Composite, InPlaceVariants) {
  const Tensor x = make({3}, kInt32, {1, 2, 3});
  lt_(x, 3);
  EXPECT_EQ(values_of(x), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(x.dtype(), kInt32);
  logical_not_(x);
  EXPECT_EQ(values_of(x), (std::vector<double>{0, 0, 1}));
  logical_or_(x, make({3}, kInt32, {1, 0, 0}));
  EXPECT_EQ(values_of(x), (std::vector<double>{1, 0, 1}));
  EXPECT_THROW(deg2rad_(x), RuntimeError);
  EXPECT_EQ(values_of(where(make({2}, kBool, {1, 0}), 1, 2.5)), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(values_of(masked_fill(doubles({1, 2}), make({2}, kBool, {0, 1}), full({}, 9.0))),
            (std::vector<double>{1, 9}));
  EXPECT_THROW(masked_fill(doubles({1, 2}), make({2}, kBool, {0, 1}), doubles({9})), RuntimeError);

  // Backward keeps the parts of an overwritten operand that it needs.
  const auto check = [](const Function& f) {
    Tensor leaf = doubles({0.3, 0.6});
    EXPECT_TRUE(gradcheck(f, {leaf.requires_grad_()}));
  };
  check([](const TensorList& in) { return asin_(mul(in[0], 1)); });
  check([](const TensorList& in) { return copysign_(mul(in[0], 1), -2); });
  check([](const TensorList& in) { return polygamma_(mul(in[0], 1), 1); });
  check([](const TensorList& in) { return logit_(mul(in[0], 1)); });
  check([](const TensorList& in) { return elu_(mul(in[0], -1)); });
  check([](const TensorList& in) { return lerp_(mul(in[0], 1), doubles({2, 3}), in[0]); });
  check([](const TensorList& in) { return masked_fill(in[0], make({2}, kBool, {0, 1}), sum(in[0])); });
}

}  // namespace
}  // namespace tercel::test
