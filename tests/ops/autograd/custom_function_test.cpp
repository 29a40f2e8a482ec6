// User-defined functions, and checkpoints.
#include "tercel/autograd/function.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/checkpoint.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/dropout.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel {
namespace {

using test::message_of;
using test::values_of;
using Tensors = std::vector<Tensor>;
using Values = std::vector<double>;

Tensor leaf(const Values& values) {
  Tensor t = test::make({static_cast<int64_t>(values.size())}, kFloat64, values);
  return t.requires_grad_();
}

struct ScaledProduct : Function<ScaledProduct> {
  static Tensor forward(FunctionContext& ctx, const Tensor& a, const Tensor& b, double scale) {
    EXPECT_FALSE(grad_enabled());
    ctx.save_for_backward({a, b});
    ctx.data = scale;
    return mul(mul(a, b), scale);
  }
  static Tensors backward(FunctionContext& ctx, const Tensors& grads) {
    const Tensors saved = ctx.saved_tensors();
    const Tensor g = mul(grads[0], std::any_cast<double>(ctx.data));
    return {ctx.needs_input_grad(0) ? mul(g, saved[1]) : Tensor(),
            ctx.needs_input_grad(1) ? mul(g, saved[0]) : Tensor()};
  }
};

struct OwnExp : Function<OwnExp> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    const Tensor y = exp(x);
    ctx.save_for_backward({y});
    return y;
  }
  static Tensors backward(FunctionContext& ctx, const Tensors& grads) {
    return {mul(grads[0], ctx.saved_tensors()[0])};
  }
};

TEST(CustomFunction, HasFirstAndSecondGradients) {
  const auto product = [](const Tensors& in) { return ScaledProduct::apply(in[0], in[1], 3.0); };
  EXPECT_TRUE(test::gradcheck(product, {leaf({1, 2}), leaf({3, 4})}));
  EXPECT_TRUE(test::gradgradcheck(product, {leaf({1, 2}), leaf({3, 4})}));
  EXPECT_TRUE(test::gradgradcheck([](const Tensors& in) { return OwnExp::apply(in[0]); }, {leaf({1, -2})}));
}

TEST(CustomFunction, IsNamedAndSavesOnce) {
  const Tensor x = leaf({1});
  const Tensor y = OwnExp::apply(x);
  EXPECT_STREQ(grad_fn(y)->name(), "OwnExpBackward");
  y.sum().backward();
  EXPECT_TRUE(message_of<RuntimeError>([&] {
                y.sum().backward();
              }).starts_with("Trying to backward through the graph a second time"));
}

TEST(CustomFunction, WithoutGradientsIsNotRecorded) {
  EXPECT_FALSE(OwnExp::apply(ones({2}, kFloat64)).requires_grad());
  const NoGradGuard guard;
  EXPECT_FALSE(OwnExp::apply(leaf({1})).requires_grad());
}

struct Doubled : Function<Doubled> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.mark_dirty({x});
    mul_(x, 2.0);
    return x;
  }
  static Tensors backward(FunctionContext&, const Tensors& grads) { return {mul(grads[0], 2.0)}; }
};

TEST(CustomFunction, MayChangeAnInput) {
  const Tensor x = leaf({1, 2});
  const Tensor y = mul(x, 3.0);
  const Tensor z = Doubled::apply(y);
  EXPECT_TRUE(z.is_same(y));
  z.sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{6, 6}));
  EXPECT_EQ(message_of<RuntimeError>([&] { Doubled::apply(x); }),
            "a leaf Variable that requires grad is being used in an in-place operation.");
}

TEST(CustomFunction, MayChangeAView) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = mul(x, 1.0);
  Doubled::apply(narrow(y, 0, 1, 2));
  y.sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{1, 2, 2}));
}

struct Parts : Function<Parts> {
  static Tensors forward(FunctionContext& ctx, const Tensor& x, bool materialize) {
    ctx.set_materialize_grads(materialize);
    const Tensor constant = clone(x);
    ctx.mark_non_differentiable({constant});
    return {mul(x, 2.0), mul(x, 3.0), constant};
  }
  static Tensors backward(FunctionContext&, const Tensors& grads) {
    return {grads[1].defined() ? add(mul(grads[0], 2.0), mul(grads[1], 3.0)) : mul(grads[0], 20.0)};
  }
};

TEST(CustomFunction, SeesZerosForUnusedOutputs) {
  const Tensor x = leaf({1});
  const Tensors parts = Parts::apply(x, true);
  EXPECT_FALSE(parts[2].requires_grad());
  EXPECT_EQ(output_nr(parts[1]), 1u);
  parts[0].sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{2}));
  clear_gradient(x);
  Parts::apply(x, false)[0].sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{20}));
}

struct Same : Function<Same> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x; }
  static Tensors backward(FunctionContext&, const Tensors& grads) { return {mul(grads[0], -1.0)}; }
};

TEST(CustomFunction, InputReturnedAsItIsIsAResult) {
  const Tensor x = leaf({1});
  const Tensor y = Same::apply(x);
  EXPECT_FALSE(y.is_same(x));
  EXPECT_TRUE(y.is_alias_of(x));
  y.sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{-1}));
  EXPECT_TRUE(message_of<RuntimeError>([&] {
                mul_(Same::apply(mul(x, 1.0)), 2.0);
              }).starts_with("Output 0 of SameBackward is a view and is being modified inplace."));
}

struct Once : Function<Once> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    ctx.set_once_differentiable(true);
    return square(x);
  }
  static Tensors backward(FunctionContext& ctx, const Tensors& grads) {
    EXPECT_FALSE(grad_enabled());
    return {mul(mul(grads[0], 2.0), ctx.saved_tensors()[0])};
  }
};

TEST(CustomFunction, OnceDifferentiable) {
  const Tensor x = leaf({3});
  const Tensor y = Once::apply(x).sum();
  const Tensor g = grad(Span<Tensor>(&y, 1), Span<Tensor>(&x, 1), {}, {}, true)[0].values;
  EXPECT_EQ(values_of(g), (Values{6}));
  EXPECT_EQ(message_of<RuntimeError>([&] { g.sum().backward(); }),
            "trying to differentiate twice a function that was marked with @once_differentiable");
}

struct Wrong : Function<Wrong> {
  static Tensor forward(FunctionContext&, const Tensor& x, int) { return mul(x, 1.0); }
  static Tensors backward(FunctionContext& ctx, const Tensors& grads) {
    static_cast<void>(ctx);
    return {sum(grads[0])};
  }
};

TEST(CustomFunction, WrongGradientsAreNamed) {
  const Tensor x = leaf({1, 2});
  EXPECT_TRUE(message_of<RuntimeError>([&] {
                Wrong::apply(x, 1).sum().backward();
              }).starts_with("Function WrongBackward returned an invalid gradient at index 0 - got"));
}

// ---- checkpoints

TEST(Checkpoint, GivesTheSameGradients) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  int calls = 0;
  const auto part = [&](const Tensors& in) {
    ++calls;
    return Tensors{tanh(mul(in[0], w)), exp(in[0])};
  };
  const Tensors direct = part({x});
  add(direct[0], mul(direct[1], 2.0)).sum().backward();
  const Values of_x = values_of(x.grad()), of_w = values_of(w.grad());
  for (const bool reentrant : {false, true}) {
    clear_gradient(x);
    clear_gradient(w);
    calls = 0;
    const Tensors checked = checkpoint(part, {x}, {.use_reentrant = reentrant});
    EXPECT_EQ(calls, 1);
    add(checked[0], mul(checked[1], 2.0)).sum().backward();
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(values_of(x.grad()), of_x);
    EXPECT_EQ(values_of(w.grad()), of_w);
  }
}

TEST(Checkpoint, DrawsTheSameRandomNumbers) {
  const Tensor x = ones({1000}, kFloat64).requires_grad_();
  for (const bool reentrant : {false, true}) {
    const Tensor y = checkpoint([](const Tensors& in) { return Tensors{dropout(in[0], 0.5, true)}; }, {x},
                                {.use_reentrant = reentrant})[0];
    const GeneratorState before = default_generator().state();
    y.sum().backward();
    EXPECT_EQ(values_of(x.grad()), values_of(y));
    EXPECT_EQ(default_generator().state(), before);
    clear_gradient(x);
  }
}

// Other threads draw meanwhile, also between the draws of the recomputed part.
TEST(CheckpointThreads, DrawAgainWhatTheyDrewWhileOthersDraw) {
  std::atomic<bool> done{false};
  std::vector<std::vector<uint64_t>> taken(2);
  std::vector<std::thread> others;
  for (std::vector<uint64_t>& own : taken)
    others.emplace_back([&] {
      while (!done && own.size() < 1'000'000) own.push_back(default_generator().reserve(1).offset);
    });
  const Tensor x = ones({200}, kFloat64).requires_grad_();
  for (int repeat = 0; repeat < 50; ++repeat)
    for (const bool reentrant : {false, true}) {
      const auto part = [](const Tensors& in) {
        std::this_thread::yield();
        return Tensors{dropout(exp(dropout(in[0], 0.5, true)), 0.5, true)};
      };
      const Tensor y = checkpoint(part, {x}, {.use_reentrant = reentrant})[0];
      y.sum().backward();
      // y is 0, 2 where x was dropped, or 2 exp(2).
      Values expected = values_of(y);
      for (double& value : expected) value = value > 3 ? 2 * value : 0;
      ASSERT_EQ(values_of(x.grad()), expected) << "the mask of backward is another than that of forward";
      clear_gradient(x);
    }
  done = true;
  for (std::thread& other : others) other.join();
  std::vector<uint64_t> all;
  for (const std::vector<uint64_t>& own : taken) all.insert(all.end(), own.begin(), own.end());
  std::sort(all.begin(), all.end());
  EXPECT_TRUE(std::adjacent_find(all.begin(), all.end()) == all.end()) << "numbers that were given out twice";
}

TEST(Checkpoint, InsideACheckpointDrawsTheSameRandomNumbers) {
  const Tensor x = ones({1000}, kFloat64).requires_grad_();
  const auto inner = [](const Tensors& in) { return Tensors{dropout(in[0], 0.5, true)}; };
  const auto outer = [&](const Tensors& in) {
    return checkpoint(inner, {dropout(checkpoint(inner, in)[0], 0.5, true)});
  };
  const Tensor y = checkpoint(outer, {x})[0];
  const GeneratorState before = default_generator().state();
  y.sum().backward();
  EXPECT_EQ(values_of(x.grad()), values_of(y));
  EXPECT_EQ(default_generator().state(), before);
}

TEST(Checkpoint, GivesSecondDerivativesAndGradientsOfGivenInputs) {
  const Tensor w = leaf({0.7, -0.4});
  const auto f = [&](const Tensors& in) { return Tensors{mul(tanh(mul(in[0], w)), exp(in[0])), square(in[0])}; };
  EXPECT_TRUE(test::gradgradcheck([&](const Tensors& in) { return checkpoint(f, in)[0]; }, {leaf({0.3, 0.2})}));
  const Tensor x = leaf({0.3, 0.2}), direct = leaf({0.3, 0.2});
  const Tensor y = checkpoint(f, {x})[0].sum(), plain = f({direct})[0].sum();
  EXPECT_EQ(values_of(grad(Span<Tensor>(&y, 1), Span<Tensor>(&x, 1))[0].values),
            values_of(grad(Span<Tensor>(&plain, 1), Span<Tensor>(&direct, 1))[0].values));
}

TEST(Checkpoint, MayBeNestedAndRunAgain) {
  const Tensor x = leaf({0.3}), direct = leaf({0.3});
  int inner = 0;
  const auto part = [&](const Tensors& in) {
    ++inner;
    return Tensors{tanh(exp(in[0]))};
  };
  const Tensor y = checkpoint([&](const Tensors& in) { return checkpoint(part, {sin(in[0])}); }, {x})[0];
  y.backward({}, /*retain_graph=*/true);
  y.backward();
  const Tensor plain = part({sin(direct)})[0];
  plain.backward({}, /*retain_graph=*/true);
  plain.backward();
  EXPECT_EQ(values_of(x.grad()), values_of(direct.grad()));
  EXPECT_GE(inner, 3);
}

TEST(Checkpoint, OneThatCalculatesSomethingElseIsAnError) {
  const Tensor x = leaf({1, 2});
  int calls = 0;
  const Tensor more =
      checkpoint([&](const Tensors& in) { return Tensors{calls++ == 0 ? exp(in[0]) : exp(exp(in[0]))}; }, {x})[0];
  EXPECT_NE(message_of<CheckpointError>([&] { more.sum().backward(); }).find("A different number of tensors was saved"),
            std::string::npos);
  calls = 0;
  const auto other_sizes = [&](const Tensors& in) {
    return Tensors{exp(calls++ == 0 ? in[0] : narrow(in[0], 0, 0, 1))};
  };
  const Tensor other = checkpoint(other_sizes, {x})[0];
  EXPECT_NE(message_of<CheckpointError>([&] { other.sum().backward(); }).find("tensor at position 0"),
            std::string::npos);
  const Tensor input = mul(x, 2.0);
  const Tensor y = checkpoint([](const Tensors& in) { return Tensors{exp(in[0])}; }, {input})[0];
  fill_(input, 0);
  EXPECT_NE(message_of<RuntimeError>([&] { y.sum().backward(); }).find("modified by an inplace operation"),
            std::string::npos);
}

TEST(Checkpoint, SequentialGivesTheSameInEveryNumberOfSegments) {
  const std::vector<CheckpointedFunction> functions = {[](const Tensors& in) { return Tensors{exp(in[0])}; },
                                                       [](const Tensors& in) { return Tensors{tanh(in[0])}; },
                                                       [](const Tensors& in) { return Tensors{mul(in[0], in[0])}; }};
  Values expected;
  for (const int64_t segments : {1, 2, 3})
    for (const bool reentrant : {false, true}) {
      const Tensor x = leaf({0.5, 0.25});
      checkpoint_sequential(functions, segments, {x}, {.use_reentrant = reentrant})[0].sum().backward();
      if (expected.empty()) expected = values_of(x.grad());
      EXPECT_EQ(values_of(x.grad()), expected);
    }
  EXPECT_THROW(checkpoint_sequential(functions, 4, {leaf({1})}), ValueError);
}

TEST(CustomFunction, OfComplexNumbersIsRecorded) {
  const Tensor x = full({2}, Scalar(Complex<double>(1, 2)), kComplex128).requires_grad_();
  EXPECT_TRUE(
      test::gradcheck([](const Tensors& in) { return ScaledProduct::apply(in[0], ones({2}, kComplex128), 3.0); }, {x}));
}

TEST(Checkpoint, RefusesGradOfGivenInputs) {
  const Tensor x = leaf({1});
  const Tensor y =
      checkpoint([](const Tensors& in) { return Tensors{exp(in[0])}; }, {x}, {.use_reentrant = true})[0].sum();
  EXPECT_TRUE(message_of<RuntimeError>([&] {
                grad(Span<Tensor>(&y, 1), Span<Tensor>(&x, 1));
              }).find("checkpoint() is incompatible with .grad()") != std::string::npos);
}

}  // namespace
}  // namespace tercel
