// Gradients of gradients, and create_graph for gradients of leaves.
#include <gtest/gtest.h>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/special/special.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel {
namespace {

using test::message_of;
using test::values_of;
using Values = std::vector<double>;
using Inputs = std::vector<Tensor>;

Tensor leaf(const Values& values) {
  Tensor t = test::make({static_cast<int64_t>(values.size())}, kFloat64, values);
  return t.requires_grad_();
}

using UnaryOp = Tensor(const Tensor& x);
using BinaryOp = Tensor(const Tensor& a, const Tensor& b);

Tensor derivative(const Tensor& y, const Tensor& x) {
  return grad(Span<Tensor>(&y, 1), Span<Tensor>(&x, 1), {}, std::nullopt, /*create_graph=*/true)[0].values;
}

TEST(SecondGradient, OfAPowerGoesOnUntilItIsConstant) {
  const Tensor x = leaf({2});
  Tensor y = pow(x, 4).sum();
  for (const double expected : {32., 48., 48., 24.}) {
    y = derivative(y, x).sum();
    EXPECT_DOUBLE_EQ(y.item<double>(), expected);
  }
}

TEST(SecondGradient, OfSavedOutputs) {
  const Tensor x = leaf({0.3});
  Tensor y = exp(x).sum();
  for (int i = 0; i < 4; ++i) {
    y = derivative(y, x).sum();
    EXPECT_DOUBLE_EQ(y.item<double>(), std::exp(0.3));
  }
  const double t = std::tanh(0.3);
  EXPECT_NEAR(derivative(derivative(tanh(x).sum(), x).sum(), x).item<double>(), -2 * t * (1 - t * t), 1e-12);
}

TEST(SecondGradient, WhereAFormulaHasAnExceptionalPoint) {
  const auto at = [](UnaryOp* f, double x) {
    const Tensor point = leaf({x});
    return derivative(derivative(f(point).sum(), point).sum(), point).item<double>();
  };
  EXPECT_NEAR(at(&sinc, 0), -M_PI * M_PI / 3, 1e-12);
  EXPECT_EQ(at(&i1, 0), 0);
  EXPECT_EQ(at(&i0, 0), 0.5);
  for (auto* f : {static_cast<BinaryOp*>(&logaddexp), static_cast<BinaryOp*>(&logaddexp2)}) {
    const Tensor a = leaf({1}), b = leaf({1});
    const double base = f == static_cast<BinaryOp*>(&logaddexp) ? 1 : std::log(2);
    EXPECT_NEAR(derivative(derivative(f(a, b).sum(), a).sum(), b).item<double>(), -base / 4, 1e-12);
    const Tensor infinite = leaf({INFINITY});
    EXPECT_EQ(derivative(f(infinite, leaf({INFINITY})).sum(), infinite).item<double>(), 0.5);
  }
}

TEST(SecondGradient, OfSpecialFunctionsInPlace) {
  EXPECT_TRUE(test::gradgradcheck(
      [](const Inputs& in) {
        Tensor y = mul(in[0], 1.0);
        asinh_(y);
        erfc_(y);
        xlogy_(y, in[1]);
        return y;
      },
      {leaf({0.5, -0.7, 1.2}), leaf({1.5, 0.3, 2})}));
}

TEST(SecondGradient, WithoutCreateGraphHasNoHistory) {
  const Tensor x = leaf({2});
  const Tensor y = mul(x, x).sum();
  const Tensor g = grad(Span<Tensor>(&y, 1), Span<Tensor>(&x, 1))[0].values;
  EXPECT_FALSE(g.requires_grad());
}

TEST(SecondGradient, OfInPlaceChanges) {
  const Values at = {0.5, -0.7, 1.2, 0.4};
  EXPECT_TRUE(test::gradgradcheck(
      [](const Inputs& in) {
        Tensor y = mul(in[0], 2.0);
        mul_(y, in[1]);
        square_(y);
        sigmoid_(y);
        return y;
      },
      {leaf(at), leaf({1.5, 0.3, -2, 1})}));
}

TEST(SecondGradient, OfInPlaceChangesThroughViews) {
  const Values at = {0.5, -0.7, 1.2, 0.4};
  EXPECT_TRUE(test::gradgradcheck(
      [](const Inputs& in) {
        Tensor y = mul(in[0], in[0]);
        const Tensor part = narrow(y, 0, 1, 2);
        mul_(part, in[1]);
        tanh_(select(y, 0, 1));
        return mul(y, part.sum());
      },
      {leaf(at), leaf({1.5, 0.3})}));
  EXPECT_TRUE(test::gradgradcheck(
      [](const Inputs& in) {
        Tensor base = zeros({2, 4}, kFloat64);
        const Tensor seen = t(base);
        copy_(select(base, 0, 1), in[0]);
        return mul(seen, seen);
      },
      {leaf(at)}));
}

TEST(SecondGradient, OfProductsWithZeros) {
  for (const Values& at : {Values{2, 3, 4}, Values{2, 0, 4}, Values{0, 3, 0}})
    EXPECT_TRUE(test::gradgradcheck([](const Inputs& in) { return prod(in[0]); }, {leaf(at)}));
  Tensor x = test::make({2, 3, 2}, kFloat64, {1, 2, 0, 4, 5, 0, 7, 8, 9, 1, 2, 3});
  x.requires_grad_();
  EXPECT_TRUE(test::gradgradcheck([](const Inputs& in) { return prod(in[0], {0, 2}); }, {x}));
}

TEST(SecondGradient, OfLinearLayers) {
  Tensor x = test::random({2, 3}, kFloat64, -1, 1, 1), w = test::random({4, 3}, kFloat64, -1, 1, 2),
         b = test::random({4}, kFloat64, -1, 1, 3);
  for (Tensor* t : {&x, &w, &b}) t->requires_grad_();
  EXPECT_TRUE(test::gradgradcheck([](const Inputs& in) { return tanh(linear(in[0], in[1], in[2])); }, {x, w, b}));
}

TEST(SecondGradient, OfFusedOpsIsRefused) {
  const Tensor x = test::random({2, 3}, kFloat64, -1, 1, 1);
  Tensor w = test::random({3, 4}, kFloat64, -1, 1, 2);
  w.requires_grad_();
  const Tensor y = inner_product(x, w, {}, Activation::Relu).sum();
  const Tensor g = derivative(y, w);
  EXPECT_EQ(message_of<RuntimeError>([&] { derivative(g.sum(), w); }),
            "trying to differentiate twice a function that was marked with @once_differentiable");
}

TEST(SecondGradient, OfLeavesAreSummedOutOfPlace) {
  Tensor x = leaf({3});
  mul(x, x).sum().backward({}, std::nullopt, /*create_graph=*/true);
  const Tensor first = x.grad();
  EXPECT_TRUE(first.requires_grad());
  mul(mul(x, x), x).sum().backward({}, std::nullopt, /*create_graph=*/true);
  EXPECT_EQ(values_of(first), (Values{6}));
  EXPECT_EQ(first.version(), 0u);
  EXPECT_EQ(values_of(x.grad()), (Values{33}));
  const Tensor sum = x.grad().sum();
  EXPECT_EQ(values_of(derivative(sum, x)), (Values{2 + 18}));
  clear_gradient(x);
}

TEST(SecondGradient, ReachesWhatTheIncomingGradientDependsOn) {
  const Tensor x = leaf({2}), w = leaf({5});
  const Tensor y = mul(x, 3.0);
  const Tensor g = grad(Span<Tensor>(&y, 1), Span<Tensor>(&x, 1), Span<Tensor>(&w, 1), {}, true)[0].values;
  EXPECT_EQ(values_of(derivative(g.sum(), w)), (Values{3}));
}

TEST(SecondGradient, LongChainNeedsNoStack) {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 1'000'000; ++i) y = mul(y, x);
  Tensor g = derivative(y.sum(), x);
  EXPECT_EQ(values_of(g), (Values{1'000'001}));
  y.reset();
  backward(Span<Tensor>(&g, 1));
  EXPECT_EQ(values_of(x.grad()), (Values{1'000'001.0 * 1'000'000.0}));
}

// The layout contract.

TEST(LeafGradient, HasTheLeafsStridesWhereTheseAreDense) {
  Tensor w = t(test::random({2, 3}, kFloat64, -1, 1, 1)).detach();
  w.requires_grad_();
  mul(w, contiguous(ones({3, 2}, kFloat64))).sum().backward();
  EXPECT_EQ(w.grad().strides(), w.strides());
  mul(w, ones({3, 2}, kFloat64)).sum().backward();
  EXPECT_EQ(values_of(w.grad()), Values(6, 2));
  Tensor gaps = narrow(zeros({2, 4}, kFloat64), 1, 0, 2).detach();
  gaps.requires_grad_();
  mul(gaps, 2.0).sum().backward();
  EXPECT_TRUE(gaps.grad().is_contiguous());
}

// Arguments of grad() and backward().

TEST(GradOptions, UnusedInputs) {
  const Tensor x = leaf({2}), other = leaf({1});
  const Tensor y = mul(x, x).sum();
  const Tensor inputs[] = {x, other};
  EXPECT_EQ(message_of<RuntimeError>([&] { grad(Span<Tensor>(&y, 1), inputs, {}, true); }),
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if "
            "this is the desired behavior.");
  EXPECT_FALSE(grad(Span<Tensor>(&y, 1), inputs, {}, true, false, true)[1].defined());
  EXPECT_EQ(values_of(grad(Span<Tensor>(&y, 1), inputs, {}, true, false, std::nullopt, true)[1].values), (Values{0}));
  EXPECT_NE(message_of<ValueError>([&] {
              grad(Span<Tensor>(&y, 1), inputs, {}, true, false, false, true);
            }).find("Expected allow_unused to be True or not passed when materialize_grads=True"),
            std::string::npos);
  const Tensor plain = ones({1}, kFloat64);
  EXPECT_EQ(message_of<RuntimeError>([&] { grad(Span<Tensor>(&y, 1), Span<Tensor>(&plain, 1), {}, true); }),
            "One of the differentiated Tensors does not require grad");
}

TEST(GradOptions, OnlyWhatLeadsToAnInputRuns) {
  const Tensor x = leaf({2}), w = leaf({3});
  const Tensor a = mul(x, 2.0), b = mul(w, 3.0);
  int calls = 0;
  b.register_hook([&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  const Tensor y = mul(a, b).sum();
  EXPECT_EQ(values_of(grad(Span<Tensor>(&y, 1), Span<Tensor>(&x, 1), {}, true)[0].values), (Values{18}));
  EXPECT_EQ(calls, 0);
  y.backward({}, true, false, Span<Tensor>(&w, 1));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(values_of(w.grad()), (Values{12}));
  EXPECT_FALSE(x.grad().defined());
}

TEST(GradOptions, BackwardIntoAnIntermediateResult) {
  const Tensor x = leaf({2});
  const Tensor a = mul(x, 2.0), y = mul(a, a).sum();
  y.backward({}, std::nullopt, false, Span<Tensor>(&a, 1));
  EXPECT_EQ(values_of(a.grad()), (Values{8}));
  EXPECT_FALSE(x.grad().defined());
}

}  // namespace
}  // namespace tercel
