// Gradients of elementwise ops beyond gradcheck: saved tensors, in-place changes, broadcasting, mixed dtypes, numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/views/views.h"
#include "tests/support/gradcheck.h"

namespace tercel {
namespace {

using test::gradcheck;
using test::make;
using test::random;
using test::values_of;
using Inputs = std::vector<Tensor>;

Tensor leaf(const test::Sizes& sizes, ScalarType dtype = kFloat64, double low = 0.5, double high = 2) {
  Tensor t = random(sizes, dtype, low, high, 3);
  t.requires_grad_();
  return t;
}

std::string thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(ElementwiseGradient, InPlaceWithMoreDimensionsIsRefused) {
  const Tensor base = leaf({2});
  Tensor x = base * 1;
  const Tensor wide = leaf({3, 2});
  for (const std::string& text : {thrown([&] { x.add_(wide); }), thrown([&] { x.mul_(wide); })})
    EXPECT_NE(text.find("doesn't match the broadcast shape"), std::string::npos) << text;
  x.sum().backward();
  EXPECT_EQ(values_of(base.grad()), (std::vector<double>{1, 1})) << "nothing was recorded";
}

TEST(ElementwiseGradient, OfNumbersOnEitherSide) {
  EXPECT_TRUE(gradcheck([](const Inputs& in) { return 2.5 - in[0]; }, {leaf({3})}));
  EXPECT_TRUE(gradcheck([](const Inputs& in) { return 2.5 / in[0]; }, {leaf({3})}));
  EXPECT_TRUE(gradcheck([](const Inputs& in) { return pow(2.5, in[0]); }, {leaf({3})}));
  for (const double exponent : {2.0, 0.5, -0.5, -1.0, 3.0, 1.7, 0.0})
    EXPECT_TRUE(gradcheck([=](const Inputs& in) { return pow(in[0], exponent); }, {leaf({3})})) << exponent;
  EXPECT_TRUE(gradcheck([](const Inputs& in) { return maximum(in[0], 1.2); }, {leaf({5})}));
  EXPECT_TRUE(gradcheck([](const Inputs& in) { return atan2(1.2, in[0]); }, {leaf({5})}));
  EXPECT_TRUE(gradcheck([](const Inputs& in) { return where(in[0] > 1, in[0], 3); }, {leaf({5})}));
  EXPECT_TRUE(gradcheck([](const Inputs& in) { return where(in[0] > 1, 3, in[0]); }, {leaf({5})}));
  EXPECT_TRUE(gradcheck([](const Inputs& in) { return sub(in[0], in[1], 3); }, {leaf({2, 3}), leaf({3})}));
}

TEST(ElementwiseGradient, IsSummedOverWhatWasBroadcast) {
  Tensor a = leaf({2, 3}, kFloat32), b = leaf({3}, kFloat32), c = leaf({2, 1}, kFloat32), d = leaf({}, kFloat32);
  const Tensor out = a + b + c + d;
  const Tensor ones = make({2, 3}, kFloat32, std::vector<double>(6, 1));
  out.backward(ones);
  EXPECT_EQ(values_of(a.grad()), std::vector<double>(6, 1));
  EXPECT_EQ(values_of(b.grad()), std::vector<double>(3, 2));
  EXPECT_EQ(c.grad().sizes(), IntSpan({2, 1}));
  EXPECT_EQ(values_of(c.grad()), std::vector<double>(2, 3));
  EXPECT_EQ(d.grad().dim(), 0);
  EXPECT_EQ(values_of(d.grad()), std::vector<double>{6});
}

TEST(ElementwiseGradient, HasTheOperandsDtype) {
  Tensor a = leaf({3}, kFloat32), b = leaf({3}, kFloat64), c = leaf({1}, kFloat16);
  const Tensor out = a * b + c;
  EXPECT_EQ(out.dtype(), kFloat64);
  out.backward(make({3}, kFloat64, {1, 1, 1}));
  EXPECT_EQ(a.grad().dtype(), kFloat32);
  EXPECT_EQ(b.grad().dtype(), kFloat64);
  EXPECT_EQ(c.grad().dtype(), kFloat16);
  EXPECT_EQ(values_of(c.grad()), std::vector<double>{3});
}

TEST(ElementwiseGradient, OfIntegersIsNotRecorded) {
  const Tensor x = leaf({3});
  EXPECT_FALSE(lt(x, 1).requires_grad());
  EXPECT_FALSE(isnan(x).requires_grad());
  EXPECT_TRUE(floor(x).requires_grad());
  const std::vector<Gradient> g = grad({floor(x)}, {x}, {make({3}, kFloat64, {1, 2, 3})});
  EXPECT_EQ(values_of(g[0].values), std::vector<double>(3, 0));
}

TEST(ElementwiseGradient, WhereIgnoresTheBranchNotTaken) {
  const Tensor x = make({2}, kFloat64, {0, 4});
  Tensor y = clone(x);
  y.requires_grad_();
  // The derivative of sqrt at 0 is infinite, but element 0 comes from elsewhere.
  const Tensor out = where(x > 1, sqrt(y), 7.0);
  const std::vector<Gradient> g = grad({out}, {y}, {make({2}, kFloat64, {0, 1})});
  EXPECT_EQ(values_of(g[0].values)[1], 0.25);
}

TEST(ElementwiseGradient, SavesOnlyWhatBackwardNeeds) {
  // Changes of unsaved tensors are allowed, those of saved ones are detected.
  const Tensor x = leaf({3});
  Tensor y = random({3}, kFloat64, 1, 2, 5);
  const Tensor ones = make({3}, kFloat64, {1, 1, 1});
  Tensor sum = x + y;
  y.add_(1);
  EXPECT_EQ(thrown([&] { sum.backward(ones); }), "nothing was thrown");

  const Tensor product = x * y;
  y.add_(1);
  EXPECT_NE(thrown([&] { product.backward(ones); }).find("modified by an inplace operation"), std::string::npos);

  Tensor z = x * 2;
  const Tensor root = sqrt(z);  // saves its output
  z.add_(1);
  EXPECT_EQ(thrown([&] { root.backward(ones); }), "nothing was thrown");
  z = x * 2;
  const Tensor logarithm = log(z);  // saves its input
  z.add_(1);
  EXPECT_NE(thrown([&] { logarithm.backward(ones); }).find("modified by an inplace operation"), std::string::npos);
}

TEST(ElementwiseGradient, OfInPlaceOps) {
  const auto check = [](const char* name, const test::Function& f, const Inputs& inputs) {
    EXPECT_TRUE(gradcheck(f, inputs)) << name;
  };
  const Inputs one = {leaf({2, 3})}, two = {leaf({2, 3}), leaf({3})};
  check(
      "exp_", [](const Inputs& in) { return exp_(clone(in[0])); }, one);
  check(
      "log_", [](const Inputs& in) { return log_(clone(in[0])); }, one);
  check(
      "neg_", [](const Inputs& in) { return neg_(clone(in[0])); }, one);
  check(
      "clamp_", [](const Inputs& in) { return clamp_(clone(in[0]), 0.8, 1.4); }, one);
  check(
      "mul_", [](const Inputs& in) { return mul_(clone(in[0]), in[1]); }, two);
  check(
      "div_", [](const Inputs& in) { return div_(clone(in[0]), in[1]); }, two);
  check(
      "pow_", [](const Inputs& in) { return pow_(clone(in[0]), in[1]); }, two);
  check(
      "add_ scaled", [](const Inputs& in) { return add_(clone(in[0]), in[1], 3); }, two);
  check(
      "mul_ number", [](const Inputs& in) { return mul_(clone(in[0]), 3); }, one);
  check(
      "lerp_", [](const Inputs& in) { return lerp_(clone(in[0]), in[1], 0.3); }, two);
  check(
      "addcmul_", [](const Inputs& in) { return addcmul_(clone(in[0]), in[1], in[1], 2); }, two);
  check(
      "addcdiv_", [](const Inputs& in) { return addcdiv_(clone(in[0]), in[1], in[1], 2); }, two);
  // Changing a view changes its base.
  check(
      "view",
      [](const Inputs& in) {
        const Tensor base = clone(in[0]);
        mul_(base[1], in[1]);
        return base * base;
      },
      two);
}

TEST(ElementwiseGradient, RefusesToChangeALeaf) {
  const Tensor x = leaf({3});
  EXPECT_NE(thrown([&] { exp_(x); }).find("a leaf Variable that requires grad"), std::string::npos);
  EXPECT_NE(thrown([&] { add_(x, 1); }).find("a leaf Variable that requires grad"), std::string::npos);
  const NoGradGuard guard;
  EXPECT_EQ(thrown([&] { add_(x, 1); }), "nothing was thrown");
}

TEST(ElementwiseGradient, OutVariantsRefuseToRecord) {
  const Tensor x = leaf({3}), out = random({3}, kFloat64, 0, 1, 1);
  EXPECT_EQ(thrown([&] { exp_out(out, x); }),
            "exp(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad.");
  EXPECT_NE(thrown([&] { add_out(out, x, out); }).find("automatic differentiation"), std::string::npos);
  EXPECT_NE(thrown([&] { exp_out(Tensor(), out); }).find("undefined"), std::string::npos);
}

// Integers.

TEST(IntegerDivision, ByZeroIsAnError) {
  const Tensor x = make({3}, kInt32, {1, 2, 3}), zero = make({3}, kInt32, {1, 0, 1});
  EXPECT_EQ(thrown([&] { floor_divide(x, zero); }), "floor_divide: ZeroDivisionError");
  EXPECT_EQ(thrown([&] { remainder(x, 0); }), "remainder: ZeroDivisionError");
  EXPECT_EQ(thrown([&] { fmod_(x, zero); }), "fmod: ZeroDivisionError");
  // Nothing was written, and floating-point operands work.
  EXPECT_EQ(values_of(x), (std::vector<double>{1, 2, 3}));
  EXPECT_TRUE(std::isinf(values_of(floor_divide(x, make({}, kFloat32, {0})))[0]));
  EXPECT_TRUE(std::isnan(values_of(remainder(make({1}, kFloat32, {1}), 0))[0]));
}

TEST(IntegerDivision, FollowsTheSigns) {
  const Tensor a = make({4}, kInt64, {-7, 7, -7, 7}), b = make({4}, kInt64, {2, -2, -2, 2});
  EXPECT_EQ(values_of(floor_divide(a, b)), (std::vector<double>{-4, -4, 3, 3}));
  EXPECT_EQ(values_of(remainder(a, b)), (std::vector<double>{1, -1, -1, 1}));
  EXPECT_EQ(values_of(fmod(a, b)), (std::vector<double>{-1, 1, -1, 1}));
  const Tensor lowest = make({1}, kInt32, {-2147483648.0});
  EXPECT_EQ(values_of(floor_divide(lowest, -1)), values_of(lowest));
  EXPECT_EQ(values_of(remainder(lowest, -1)), std::vector<double>{0});
  EXPECT_EQ(values_of(neg(lowest)), values_of(lowest));
  EXPECT_EQ(values_of(abs(lowest)), values_of(lowest));
}

TEST(FloatDivision, FloorsAtTheEdges) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor a = make({7}, kFloat64, {-7, 7, 1, -1, 0, 5, 1});
  const Tensor b = make({7}, kFloat64, {2, -2, -inf, inf, -3, 0, 0.1});
  EXPECT_EQ(values_of(floor_divide(a, b)), (std::vector<double>{-4, -4, -1, -1, -0.0, inf, 9}));
  const Tensor endless = make({3}, kFloat64, {inf, -inf, inf});
  for (const double q : values_of(floor_divide(endless, make({3}, kFloat64, {2, -2, inf})))) EXPECT_TRUE(std::isnan(q));
  EXPECT_EQ(values_of(floor_divide(endless, 0)), (std::vector<double>{inf, -inf, inf}));
  EXPECT_EQ(values_of(floor_divide(make({1}, kFloat64, {1e300}), 1e-300)), std::vector<double>{inf});
}

TEST(IntegerPower, IsExact) {
  EXPECT_EQ(values_of(pow(make({4}, kInt64, {2, -1, 1, 3}), make({4}, kInt64, {40, -3, -1, -1}))),
            (std::vector<double>{1099511627776.0, -1, 1, 0}));
  EXPECT_EQ(values_of(pow(make({1}, kInt32, {7}), 2)), std::vector<double>{49});
  EXPECT_EQ(values_of(pow(make({1}, kInt32, {3}), 21)), std::vector<double>{1870418611.0});
  EXPECT_EQ(values_of(pow(2, make({2}, kInt64, {10, 0}))), (std::vector<double>{1024, 1}));
  EXPECT_EQ(thrown([] { pow(make({1}, kInt32, {7}), -1); }), "Integers to negative integer powers are not allowed.");
}

TEST(Arithmetic, OperatorsAndMethods) {
  Tensor x = make({2}, kFloat32, {1, 2});
  const Tensor y = make({2}, kFloat32, {3, 5});
  EXPECT_EQ(values_of((x + y) * 2 - 1 / x), (std::vector<double>{7, 13.5}));
  EXPECT_EQ(values_of(-x), (std::vector<double>{-1, -2}));
  EXPECT_EQ(values_of(2 < x), (std::vector<double>{0, 0}));
  EXPECT_EQ(values_of(x == y - 2), (std::vector<double>{1, 0}));
  x.add_(y).sub_(1.0f * y, 2).mul_(3).div_(y);
  EXPECT_EQ(values_of(x), (std::vector<double>{-2, static_cast<double>(-9.0f / 5.0f)}));
  x += 1;
  x *= y;
  EXPECT_EQ(values_of(x)[0], -3);
  EXPECT_EQ(thrown([&] {
              make({2}, kInt32, {1, 2}).add_(make({2}, kInt32, {1, 2}), 0.5);
            }),
            "add_: For integral input tensors, argument alpha must not be a floating point number.");
}

}  // namespace
}  // namespace tercel
