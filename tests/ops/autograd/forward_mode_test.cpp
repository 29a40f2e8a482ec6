#include "tercel/autograd/forward_mode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/function.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/out_variants.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/slicing.h"
#include "tercel/ops/views/views.h"
#include "tests/support/tensors.h"

namespace tercel {
namespace {

using test::make;
using test::values_of;

Tensor numbers(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  return make({n}, kFloat64, values);
}
std::vector<double> values(const Tensor& t) { return values_of(t); }
std::vector<double> tangent(const Tensor& t) { return values(unpack_dual(t).tangent); }
bool has_tangent(const Tensor& t) { return unpack_dual(t).tangent.defined(); }
using V = std::vector<double>;

TEST(ForwardMode, CarriesTangentsThroughOps) {
  const DualLevel level;
  const Tensor x = make_dual(numbers({1, 2}), numbers({1, 10}));
  const Tensor y = x * x + 3 * x;
  EXPECT_EQ(tangent(y), (V{5, 70}));
  EXPECT_FALSE(unpack_dual(exp(x)).tangent.requires_grad());
  EXPECT_EQ(tangent(sum(y)), (V{75}));
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(values(unpack_dual(y).primal), (V{4, 10}));
  EXPECT_FALSE(has_tangent(unpack_dual(y).primal));
  EXPECT_FALSE(has_tangent(y.detach()));
  EXPECT_FALSE(has_tangent(y > 5));
}

TEST(ForwardMode, KeepsTheTangentItWasGiven) {
  const DualLevel level;
  const Tensor t = numbers({1, 2}), x = numbers({3, 4});
  const Tensor dual = make_dual(x, t);
  EXPECT_TRUE(unpack_dual(dual).tangent.is_same(t));
  EXPECT_FALSE(has_tangent(x));
  EXPECT_TRUE(dual.is_alias_of(x));
  // Strides that differ from the tensor's: a copy.
  const Tensor wide = make({2, 2}, kFloat64, {1, 2, 3, 4});
  const Tensor turned = make_dual(wide, wide.t());
  EXPECT_EQ(unpack_dual(turned).tangent.strides(), wide.strides());
  EXPECT_EQ(tangent(turned), (V{1, 3, 2, 4}));
}

TEST(ForwardMode, WithoutGradientsToo) {
  const DualLevel level;
  const Tensor x = make_dual(numbers({1, 2}), numbers({1, 1}));
  {
    const NoGradGuard no_grad;
    EXPECT_EQ(tangent(x * x), (V{2, 4}));
  }
  {
    const ForwardModeGuard off(false);
    EXPECT_FALSE(forward_mode_enabled());
    EXPECT_FALSE(has_tangent(x * x));
  }
  {
    const InferenceMode inference;
    EXPECT_FALSE(has_tangent(x * x));
  }
  EXPECT_TRUE(forward_mode_enabled());
}

TEST(ForwardMode, LevelsEndWithTheirTangents) {
  EXPECT_EQ(current_dual_level(), -1);
  EXPECT_THROW(make_dual(numbers({1}), numbers({1})), RuntimeError);
  Tensor x, y;
  {
    const DualLevel level;
    EXPECT_EQ(current_dual_level(), 0);
    EXPECT_THROW(enter_dual_level(), RuntimeError);
    x = make_dual(numbers({1}), numbers({1}));
    EXPECT_TRUE(has_tangent(x));
    // Each thread has its own levels.
    std::thread([&] {
      EXPECT_EQ(current_dual_level(), -1);
      const DualLevel other;
      EXPECT_FALSE(has_tangent(x));
      EXPECT_FALSE(has_tangent(x * x));
    }).join();
  }
  EXPECT_FALSE(has_tangent(x));
  EXPECT_FALSE(has_tangent(x * x));
  const DualLevel next;
  EXPECT_FALSE(has_tangent(x));
  EXPECT_FALSE(has_tangent(x * x));
  EXPECT_FALSE((x * x).requires_grad());
  EXPECT_THROW(
      {
        exit_dual_level();
        exit_dual_level();
      },
      RuntimeError);
}

TEST(ForwardMode, RefusesTangentsThatDoNotFit) {
  const DualLevel level;
  EXPECT_THROW(make_dual(numbers({1, 2}), numbers({1})), RuntimeError);
  EXPECT_THROW(make_dual(numbers({1}), to(numbers({1}), kFloat32)), RuntimeError);
  EXPECT_THROW(make_dual(to(numbers({1}), kInt64), numbers({1})), ValueError);
  EXPECT_THROW(make_dual(numbers({1}), to(numbers({1}), kInt64)), ValueError);
  EXPECT_THROW(make_dual(Tensor(), numbers({1})), Error);
}

TEST(ForwardMode, ViewsSeeTheirBasesTangent) {
  const DualLevel level;
  const Tensor x = make_dual(numbers({1, 2, 3, 4}), numbers({1, 2, 3, 4}));
  const Tensor m = x.view({2, 2}), row = m.select(0, 1), turned = m.t();
  EXPECT_EQ(tangent(row), (V{3, 4}));
  EXPECT_EQ(tangent(turned), (V{1, 3, 2, 4}));
  EXPECT_TRUE(unpack_dual(row).tangent.is_alias_of(unpack_dual(x).tangent));
  row.mul_(10);
  EXPECT_EQ(tangent(x), (V{1, 2, 30, 40}));
  EXPECT_EQ(tangent(turned), (V{1, 30, 2, 40}));
  row.zero_();
  EXPECT_EQ(tangent(m), (V{1, 2, 0, 0}));
}

TEST(ForwardMode, WhatWasGivenAsATangentIsNotChanged) {
  const DualLevel level;
  const Tensor t = numbers({1, 2}), x = make_dual(numbers({3, 4}), t), same = x.clone();
  for (const Tensor& dual : {x, same}) {
    dual.select(0, 0).mul_(10);
    EXPECT_EQ(tangent(dual), (V{10, 2}));
    dual.mul_(10);
    EXPECT_EQ(tangent(dual), (V{100, 20}));
  }
  EXPECT_EQ(values(t), (V{1, 2}));
}

TEST(ForwardMode, ChangesThroughViewsReachABaseWithoutTangent) {
  const DualLevel level;
  const Tensor base = zeros({2, 3}, kFloat64), column = base.select(1, 1);
  const Tensor x = make_dual(numbers({1, 2}), numbers({5, 6}));
  column.copy_(x);
  EXPECT_EQ(tangent(base), (V{0, 5, 0, 0, 6, 0}));
  EXPECT_EQ(tangent(column), (V{5, 6}));
  EXPECT_EQ(tangent(base.select(0, 0)), (V{0, 5, 0}));
  column.mul_(x);
  EXPECT_EQ(tangent(column), (V{10, 24}));
  // The reverse: a view that existed before its base had a tangent.
  const Tensor y = zeros({2}, kFloat64), view = y.view({2, 1});
  y.add_(x);
  EXPECT_EQ(tangent(view), (V{5, 6}));
}

TEST(ForwardMode, ChangesInPlace) {
  const DualLevel level;
  const Tensor x = make_dual(numbers({1, 2}), numbers({1, 1}));
  const Tensor y = x * 1;
  y.mul_(x);
  EXPECT_EQ(tangent(y), (V{2, 4}));
  EXPECT_EQ(tangent(x), (V{1, 1}));
  y.exp_();
  EXPECT_DOUBLE_EQ(tangent(y)[0], 2 * std::exp(1.0));
  EXPECT_DOUBLE_EQ(tangent(y)[1], 4 * std::exp(4.0));
  y.fill_(3);
  EXPECT_EQ(tangent(y), (V{0, 0}));
  const Tensor plain = numbers({1, 1});
  plain.add_(x);
  EXPECT_EQ(tangent(plain), (V{1, 1}));
  const Tensor m = make_dual(make({1, 2}, kFloat64, {1, 2}), make({1, 2}, kFloat64, {3, 4}));
  m.t_();
  EXPECT_EQ(unpack_dual(m).tangent.sizes(), IntSpan({2, 1}));
  EXPECT_EQ(tangent(m), (V{3, 4}));
}

TEST(ForwardMode, ComplexNumbersAndTheirParts) {
  const DualLevel level;
  const Tensor z = complex(numbers({1, 2}), numbers({3, 4})), t = complex(numbers({1, 0}), numbers({0, 1}));
  const Tensor dual = make_dual(z, t), parts = view_as_real(dual);
  EXPECT_EQ(tangent(parts), (V{1, 0, 0, 1}));
  // d(z^2) = 2 z dz
  EXPECT_EQ(tangent(view_as_real(dual * dual)), (V{2, 6, -8, 4}));
  parts.mul_(2);
  EXPECT_EQ(tangent(real(dual)), (V{2, 0}));
}

TEST(ForwardMode, SeveralOutputs) {
  const DualLevel level;
  const Tensor x = make_dual(make({2, 2}, kFloat64, {1, 4, 3, 2}), make({2, 2}, kFloat64, {10, 40, 30, 20}));
  const auto [largest, places] = max(x, 1);
  EXPECT_EQ(tangent(largest), (V{40, 30}));
  EXPECT_FALSE(has_tangent(places));
  for (const Tensor& row : unbind(x, 0)) EXPECT_TRUE(has_tangent(row));
}

TEST(ForwardMode, TangentsHaveGradients) {
  const DualLevel level;
  const Tensor x = numbers({2, 3}).requires_grad_(), v = numbers({1, 1}).requires_grad_();
  const Tensor y = make_dual(x, v) * x * x;  // only one of the factors has a tangent: dy = x^2 v
  EXPECT_TRUE(y.requires_grad());
  const Tensor dy = unpack_dual(y).tangent;
  EXPECT_EQ(values(dy), (V{4, 9}));
  sum(dy).backward();
  EXPECT_EQ(values(x.grad()), (V{4, 6}));
  EXPECT_EQ(values(v.grad()), (V{4, 9}));
}

TEST(ForwardMode, GradientsHaveTangents) {
  const DualLevel level;
  const Tensor x = numbers({1, 2}).requires_grad_();
  const Tensor dual = make_dual(x, numbers({1, 10}));
  // f = sum(exp(x) + x^3): the Hessian is diagonal, exp(x) + 6 x.
  const Tensor f = sum(exp(dual) + dual * dual * dual);
  const Tensor g = grad({&f, 1}, {&x, 1})[0].values;
  EXPECT_DOUBLE_EQ(values(g)[0], std::exp(1.0) + 3);
  EXPECT_DOUBLE_EQ(values(g)[1], std::exp(2.0) + 12);
  const V hv = tangent(g);
  EXPECT_NEAR(hv[0], std::exp(1.0) + 6, 1e-12);
  EXPECT_NEAR(hv[1], 10 * (std::exp(2.0) + 12), 1e-11);
}

TEST(ForwardMode, GraphsThatNobodyWalksAreFreed) {
  weak_intrusive_ptr<TensorImpl, detail::UndefinedTensor> tangent_of_result;
  {
    const DualLevel level;
    const Tensor x = numbers({1, 2}).requires_grad_();
    const Tensor y = exp(make_dual(x, numbers({1, 1})));
    const Tensor dy = unpack_dual(y).tangent;
    EXPECT_TRUE(dy.requires_grad());
    tangent_of_result = weak_intrusive_ptr<TensorImpl, detail::UndefinedTensor>(dy.impl_ptr());
  }
  EXPECT_FALSE(tangent_of_result.lock().defined());
}

TEST(ForwardMode, OutVariantsRefuse) {
  const DualLevel level;
  const Tensor x = make_dual(numbers({1, 2}), numbers({1, 1})), plain = numbers({1, 2});
  EXPECT_THROW(add_out(plain, x, plain), NotImplementedError);
  EXPECT_THROW(add_out(x, plain, plain), NotImplementedError);
  EXPECT_THROW(mm_out(make({1, 1}, kFloat64, {0}), x.view({1, 2}), plain.view({2, 1})), NotImplementedError);
}

struct Cube : Function<Cube> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x * x;
  }
  static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads) {
    const Tensor x = ctx.saved_tensors()[0];
    return {grads[0] * 3 * x * x};
  }
};

TEST(ForwardMode, FunctionsOfUsers) {
  const DualLevel level;
  const Tensor x = make_dual(numbers({1, 2}), numbers({1, 1}));
  EXPECT_EQ(tangent(Cube::apply(x)), (V{3, 12}));
  EXPECT_FALSE(Cube::apply(x).requires_grad());
}

TEST(ForwardMode, OfWhatCannotBeDifferentiatedTwiceIsRefused) {
  const DualLevel level;
  const Tensor x = make_dual(numbers({1, 2}), numbers({1, 1}));
  struct Once : Function<Once> {
    static Tensor forward(FunctionContext& ctx, const Tensor& t) {
      ctx.set_once_differentiable(true);
      return t * 2;
    }
    static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) { return {grads[0] * 2}; }
  };
  EXPECT_THROW(Once::apply(x), NotImplementedError);
}

}  // namespace
}  // namespace tercel
