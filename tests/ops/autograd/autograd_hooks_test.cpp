// Hooks, retained gradients, saved-tensor hooks, anomaly mode, inference mode.
#include <gtest/gtest.h>

#include "tercel/autograd/anomaly.h"
#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/saved_tensor.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel {
namespace {

using test::message_of;
using test::values_of;
using Values = std::vector<double>;

Tensor leaf(const Values& values) {
  Tensor t = test::make({static_cast<int64_t>(values.size())}, kFloat64, values);
  return t.requires_grad_();
}

/** A hook that records its name and multiplies. */
TensorHook times(std::string& log, const char* name, double factor) {
  return [&log, name, factor](const Tensor& g) {
    log += name;
    return mul(g, factor);
  };
}

TEST(Hooks, RunInTheirOrderUntilTheyAreRemoved) {
  std::string log;
  const Tensor x = leaf({1});
  HookHandle first = x.register_hook(times(log, "a", 2)), second = x.register_hook(times(log, "b", 3));
  mul(x, 5.0).sum().backward();
  EXPECT_EQ(log, "ab");
  EXPECT_EQ(values_of(x.grad()), (Values{30}));
  first.remove();
  first.remove();
  mul(x, 5.0).sum().backward();
  EXPECT_EQ(log, "abb");
  EXPECT_EQ(values_of(x.grad()), (Values{45}));
}

TEST(Hooks, HandleMayOutliveTheTensor) {
  HookHandle handle;
  {
    const Tensor x = leaf({1});
    handle = mul(x, 2.0).register_hook([](const Tensor&) { return Tensor(); });
  }
  handle.remove();
}

TEST(Hooks, MayRemoveThemselves) {
  const Tensor x = leaf({1});
  int calls = 0;
  HookHandle handle;
  handle = x.register_hook([&](const Tensor&) {
    ++calls;
    handle.remove();
    return Tensor();
  });
  for (int i = 0; i < 2; ++i) mul(x, 1.0).sum().backward();
  EXPECT_EQ(calls, 1);
}

TEST(Hooks, NeedAGradient) {
  const Tensor x = ones({1});
  EXPECT_EQ(message_of<RuntimeError>([&] { x.register_hook([](const Tensor&) { return Tensor(); }); }),
            "cannot register a hook on a tensor that doesn't require gradient");
  const Tensor y = mul(leaf({1}), 2.0);
  EXPECT_EQ(message_of<RuntimeError>([&] { register_post_accumulate_grad_hook(y, [](const Tensor&) {}); }),
            "post accumulate grad hooks cannot be registered on non-leaf tensors");
}

TEST(Hooks, AfterAccumulationSeeTheGradient) {
  const Tensor x = leaf({1});
  Values seen;
  HookHandle handle =
      register_post_accumulate_grad_hook(x, [&](const Tensor& t) { seen.push_back(t.grad().item<double>()); });
  mul(x, 2.0).sum().backward();
  mul(x, 3.0).sum().backward();
  handle.remove();
  mul(x, 4.0).sum().backward();
  EXPECT_EQ(seen, (Values{2, 5}));
}

TEST(Hooks, OfNodesSeeAndReplaceWhatGoesInAndOut) {
  const Tensor x = leaf({3});
  const Tensor y = mul(x, x);
  std::string log;
  grad_fn(y)->register_prehook([&](const std::vector<Tensor>& grads) {
    log += "pre";
    return std::optional(std::vector<Tensor>{mul(grads[0], 10.0)});
  });
  HookHandle post = grad_fn(y)->register_hook([&](const std::vector<Tensor>& in, const std::vector<Tensor>& out) {
    log += "post";
    EXPECT_EQ(values_of(out[0]), (Values{10}));
    EXPECT_EQ(in.size(), 2u);
    return std::optional(std::vector<Tensor>{in[0], Tensor()});
  });
  y.register_hook(times(log, "tensor", 1));
  const Tensor s = y.sum();
  s.backward({}, true);
  EXPECT_EQ(log, "tensorprepost");
  EXPECT_EQ(values_of(x.grad()), (Values{30}));
  post.remove();
  s.backward();
  EXPECT_EQ(values_of(x.grad()), (Values{90}));
}

TEST(RetainGrad, ComesLastAndOnce) {
  const Tensor x = leaf({1});
  const Tensor y = mul(x, 2.0);
  retain_grad(y);
  retain_grad(y);
  EXPECT_TRUE(retains_grad(y));
  std::string log;
  y.register_hook(times(log, "a", 7));
  y.sum().backward({}, true);
  EXPECT_EQ(values_of(y.grad()), (Values{7}));
  y.sum().backward();
  EXPECT_EQ(values_of(y.grad()), (Values{14}));
}

TEST(RetainGrad, FollowsChangesInPlace) {
  const Tensor x = leaf({1});
  const Tensor y = mul(x, 2.0);
  retain_grad(y);
  mul_(y, 3.0);
  mul(y, 5.0).sum().backward();
  EXPECT_EQ(values_of(y.grad()), (Values{5}));
  EXPECT_EQ(message_of<RuntimeError>([] { retain_grad(ones({1})); }),
            "can't retain_grad on Tensor that has requires_grad=False");
}

TEST(SavedTensorHooks, PackAndUnpack) {
  const Tensor x = leaf({2, 3});
  int packed = 0, unpacked = 0;
  Tensor y;
  {
    const SavedTensorHooksGuard guard({[&](const Tensor& t) -> std::any {
                                         ++packed;
                                         return test::values_of(t);
                                       },
                                       [&](const std::any& kept) {
                                         ++unpacked;
                                         return test::make({2}, kFloat64, std::any_cast<Values>(kept));
                                       }});
    y = mul(exp(x), x).sum();
  }
  EXPECT_EQ(packed, 3);  // the output of exp, and both operands of mul
  const Tensor g = grad(Span<Tensor>(&y, 1), Span<Tensor>(&x, 1), {}, std::nullopt, /*create_graph=*/true)[0].values;
  EXPECT_GE(unpacked, 3);
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(values_of(g)[i], std::exp(values_of(x)[i]) * (1 + values_of(x)[i]), 1e-9);
  const Tensor sum = g.sum();
  const Tensor second = grad(Span<Tensor>(&sum, 1), Span<Tensor>(&x, 1))[0].values;
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(values_of(second)[i], std::exp(values_of(x)[i]) * (2 + values_of(x)[i]), 1e-9);
}

TEST(SavedTensorHooks, MustNotChangeWhatTheyPack) {
  const Tensor x = leaf({2});
  const Tensor y = mul(x, 2.0);
  const SavedTensorHooksGuard guard({[](const Tensor& t) -> std::any {
                                       fill_(t, 0);
                                       return t;
                                     },
                                     [](const std::any& kept) { return std::any_cast<Tensor>(kept); }});
  EXPECT_TRUE(message_of<RuntimeError>([&] {
                exp(y);
              }).starts_with("A saved tensor pack hook is modifying its input in place."));
}

TEST(Anomaly, NamesTheFunctionThatMadeANan) {
  const DetectAnomalyGuard guard;
  std::string where;
  set_anomaly_hooks({[] { return std::string("line 7"); },
                     [&](const Node& node) { where = node.extras_or_null() ? node.extras_or_null()->trace : ""; }});
  const Tensor x = leaf({-1});
  const Tensor y = sqrt(x).sum();
  EXPECT_EQ(message_of<RuntimeError>([&] { y.backward(); }),
            "Function 'SqrtBackward0' returned nan values in its 0th output.");
  EXPECT_EQ(where, "line 7");
  set_anomaly_hooks({});
}

TEST(Anomaly, LooksOnlyWhereItIsOn) {
  const Tensor x = leaf({-1});
  sqrt(x).sum().backward();
  const DetectAnomalyGuard guard(/*check_nan=*/false);
  sqrt(x).sum().backward();
  EXPECT_TRUE(std::isnan(values_of(x.grad())[0]));
}

TEST(Inference, TensorsAreNotTracked) {
  const Tensor x = leaf({1, 2});
  Tensor made, view_of_made, view_of_x;
  {
    const InferenceMode mode;
    EXPECT_TRUE(is_inference_mode_enabled());
    EXPECT_FALSE(grad_enabled());
    made = mul(x, 2.0);
    add_(made, 1.0);
    view_of_made = narrow(made, 0, 0, 1);
    view_of_x = narrow(x, 0, 0, 1);
    {
      const InferenceMode off(false);
      EXPECT_TRUE(mul(x, 2.0).requires_grad());
      EXPECT_FALSE(ones({1}).impl().is_inference());
    }
  }
  EXPECT_FALSE(is_inference_mode_enabled());
  EXPECT_TRUE(made.impl().is_inference() && view_of_made.impl().is_inference());
  EXPECT_FALSE(made.requires_grad() || view_base(view_of_made).defined());
  EXPECT_FALSE(view_of_x.impl().is_inference());
  EXPECT_TRUE(message_of<RuntimeError>([&] {
                add_(made, 1.0);
              }).starts_with("Inplace update to inference tensor outside InferenceMode is not allowed."));
  EXPECT_TRUE(
      message_of<RuntimeError>([&] { mul(made, x); }).starts_with("Inference tensors cannot be saved for backward."));
  EXPECT_TRUE(message_of<RuntimeError>([&] {
                made.requires_grad_();
              }).starts_with("Setting requires_grad=True on inference tensor outside InferenceMode"));
  EXPECT_TRUE(message_of<RuntimeError>([&] {
                add_(view_of_x, 1.0);
              }).starts_with("A view was created in inference mode and is being modified inplace"));
  EXPECT_TRUE(mul(clone(made), x).requires_grad());
  EXPECT_EQ(values_of(made), (Values{3, 5}));
}

TEST(DetachInPlace, MakesALeaf) {
  const Tensor x = leaf({1});
  const Tensor y = mul(x, 2.0);
  EXPECT_EQ(output_nr(y), 0u);
  detach_(y);
  EXPECT_TRUE(y.is_leaf());
  EXPECT_FALSE(y.requires_grad() || grad_fn(y).defined());
  EXPECT_TRUE(
      message_of<RuntimeError>([&] { detach_(narrow(y, 0, 0, 1)); }).starts_with("Can't detach views in-place"));
}

TEST(SetData, KeepsHistoryAndVersion) {
  const Tensor x = leaf({1, 2});
  mul_(x.detach(), 1.0);
  const uint32_t version = x.version();
  set_data(x, test::make({3}, kFloat64, {7, 8, 9}));
  EXPECT_EQ(values_of(x), (Values{7, 8, 9}));
  EXPECT_TRUE(x.requires_grad());
  EXPECT_EQ(x.version(), version);
  EXPECT_TRUE(message_of<RuntimeError>([&] { set_data(x, ones({3}, kFloat32)); }).find("incompatible tensor type") !=
              std::string::npos);
}

}  // namespace
}  // namespace tercel
