// The backward pass: order, sums, leaves, hooks, errors.
#include <gtest/gtest.h>

#include <thread>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/embedding/embedding.h"
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

Tensor leaf(std::initializer_list<detail::TensorLiteral> values) {
  Tensor t = tensor(values, kFloat32);
  t.requires_grad_();
  return t;
}

TEST(Engine, GradientOfAProductReachesBothLeaves) {
  Tensor x = leaf({1, 2, 3}), y = leaf({4, 5, 6});
  mul(x, y).sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{4, 5, 6}));
  EXPECT_EQ(values_of(y.grad()), (Values{1, 2, 3}));
}

TEST(Engine, UsesOfOneTensorAddUp) {
  Tensor x = leaf({2});
  const Tensor square = mul(x, x);
  add(mul(square, x), x).sum().backward();  // x^3 + x
  EXPECT_EQ(values_of(x.grad()), (Values{13}));
}

TEST(Engine, GradientsOfSeveralPassesAddUp) {
  Tensor x = leaf({3});
  mul(x, 2.0).sum().backward();
  mul(x, 5.0).sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{7}));
  clear_gradient(x);
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, DiamondRunsEachNodeOnce) {
  Tensor x = leaf({1});
  int calls = 0;
  const Tensor shared = mul(x, 3.0);
  register_hook(shared, [&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  add(mul(shared, 2.0), mul(shared, 4.0)).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(values_of(x.grad()), (Values{18}));
}

TEST(Engine, RootThatFeedsAnotherRootWaitsForIt) {
  Tensor x = leaf({1});
  const Tensor a = mul(x, 2.0), b = mul(a, 3.0);
  const Tensor roots[] = {a, b};
  backward(roots);
  EXPECT_EQ(values_of(x.grad()), (Values{8}));
}

TEST(Engine, SameRootTwiceCountsTwice) {
  Tensor x = leaf({1});
  const Tensor a = mul(x, 2.0);
  const Tensor roots[] = {a, a};
  backward(roots);
  EXPECT_EQ(values_of(x.grad()), (Values{4}));
}

TEST(Engine, AccumulatesInPlaceIntoAGivenGradient) {
  Tensor x = leaf({1, 2});
  Tensor arena = zeros({4});
  set_gradient(x, {narrow(arena, 0, 1, 2).detach(), {}});
  mul(x, 3.0).sum().backward();
  mul(x, 1.0).sum().backward();
  EXPECT_EQ(values_of(arena), (Values{0, 4, 4, 0}));
}

TEST(Engine, GradientGivenByTheCallerIsNotChanged) {
  Tensor x = leaf({1, 2});
  const Tensor g = tensor({1.0, 1.0});
  add(x, 0.0).backward(g);
  add(x, 0.0).backward(g);
  EXPECT_EQ(values_of(x.grad()), (Values{2, 2}));
  EXPECT_EQ(values_of(g), (Values{1, 1}));
}

TEST(Engine, GradLeavesLeavesAlone) {
  Tensor x = leaf({2});
  const Tensor y = mul(x, x);
  const std::vector<Gradient> g = grad(Span<Tensor>(&y, 1), Span<Tensor>(&x, 1));
  EXPECT_EQ(values_of(g[0].values), (Values{4}));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, GradOfAnIntermediateResult) {
  Tensor x = leaf({2});
  const Tensor y = mul(x, 3.0), z = mul(y, y);
  const std::vector<Gradient> g = grad(Span<Tensor>(&z, 1), Span<Tensor>(&y, 1));
  EXPECT_EQ(values_of(g[0].values), (Values{12}));
}

TEST(Engine, NothingIsRecordedWithoutGradients) {
  Tensor x = leaf({1});
  const NoGradGuard guard;
  const Tensor y = mul(x, 2.0);
  EXPECT_FALSE(y.requires_grad());
  {
    const EnableGradGuard enable;
    EXPECT_TRUE(mul(x, 2.0).requires_grad());
  }
  EXPECT_FALSE(mul(x, 2.0).requires_grad());
}

TEST(Engine, HookMayReplaceTheGradient) {
  Tensor x = leaf({1});
  const Tensor y = mul(x, 2.0);
  register_hook(y, [](const Tensor& g) { return mul(g, 10.0); });
  register_hook(x, [](const Tensor& g) { return add(g, 1.0); });
  y.sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{21}));
}

TEST(Engine, RetainGradKeepsAnIntermediateGradient) {
  Tensor x = leaf({1});
  Tensor y = mul(x, 2.0);
  retain_grad(y);
  mul(y, 5.0).sum().backward();
  EXPECT_EQ(values_of(y.grad()), (Values{5}));
}

TEST(Engine, BackwardInsideAHook) {
  Tensor x = leaf({1}), other = leaf({1});
  const Tensor y = mul(x, 2.0);
  register_hook(y, [&](const Tensor&) {
    const EnableGradGuard guard;
    mul(other, 7.0).sum().backward();
    return Tensor();
  });
  y.sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{2}));
  EXPECT_EQ(values_of(other.grad()), (Values{7}));
}

TEST(Engine, LongChainNeedsNoStack) {
  Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 1'000'000; ++i) y = neg(y);
  y.sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{1}));
}

TEST(Engine, LongChainIsFreedWithoutBackward) {
  Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 1'000'000; ++i) y = mul(y, y);  // each node also holds its input
  y.reset();
  EXPECT_EQ(x.impl().storage().use_count(), 1u);
}

TEST(Engine, LeavesAreFreedAfterTheirGraph) {
  int freed = 0;
  float number = 1;
  const auto count = [](void* context) { ++*static_cast<int*>(context); };
  for (const bool with_backward : {false, true}) {
    freed = 0;
    {
      Tensor x(make_intrusive<TensorImpl>(
          make_intrusive<StorageImpl>(sizeof(float), DataPtr(&number, &freed, count, kCpu), nullptr, false), kFloat32,
          IntSpan{1}, IntSpan{1}, 0));
      x.requires_grad_();
      Tensor y = mul(x, 2.0).sum();
      if (with_backward) y.backward();
      y = Tensor();
      EXPECT_EQ(freed, 0);
    }
    EXPECT_EQ(freed, 1);
  }
}

TEST(Engine, RowsStayRows) {
  Tensor w = leaf({{1, 2}, {3, 4}, {5, 6}});
  const Tensor keys = tensor({2, 0, 2});
  const Tensor a = embedding(w, keys, {}, /*sparse=*/true), b = embedding(w, keys, {}, /*sparse=*/true);
  add(a.sum(), mul(b.sum(), 2.0)).backward();
  const Gradient g = gradient_of(w);
  ASSERT_TRUE(g.is_rows());
  EXPECT_EQ(g.rows.numel(), 6);
  EXPECT_EQ(g.values.sizes(), (IntSpan{6, 2}));
  EXPECT_THROW(w.grad(), RuntimeError);
}

TEST(Engine, RowsAndDenseAddUpDense) {
  Tensor w = leaf({{1, 2}, {3, 4}});
  const Tensor rows = embedding(w, tensor({1, 1}), {}, /*sparse=*/true);
  add(rows.sum(), w.sum()).backward();
  EXPECT_EQ(values_of(w.grad()), (Values{1, 1, 3, 3}));
}

TEST(EngineErrors, SecondBackward) {
  Tensor x = leaf({2});
  const Tensor y = mul(x, x).sum();
  y.backward();
  EXPECT_TRUE(message_of([&] { y.backward(); }).starts_with("Trying to backward through the graph a second time"));
}

TEST(EngineErrors, NodesSayWhatTheyHaveSaved) {
  Tensor x = leaf({2}), w = leaf({3});
  const Tensor y = mul(x, w), e = exp(x), s = sum(x);
  const auto saved = [](const Tensor& t) { return grad_fn(t)->saved(); };
  ASSERT_EQ(saved(y).size(), 2U);
  EXPECT_TRUE(saved(y)[0]->get().is_same(x));
  EXPECT_TRUE(saved(y)[1]->get().is_same(w));
  ASSERT_EQ(saved(e).size(), 1U);
  EXPECT_TRUE(saved(e)[0]->is_output());
  EXPECT_TRUE(saved(s).empty());
  saved(y)[1]->register_hooks({[](const Tensor& t) -> std::any { return mul(t, 2.0); },
                               [](const std::any& kept) { return std::any_cast<Tensor>(kept); }});
  y.backward();
  EXPECT_EQ(values_of(x.grad()), (Values{6}));
  EXPECT_TRUE(message_of([&] { saved(y); }).starts_with("Trying to backward through the graph a second time"));
}

TEST(EngineErrors, SecondBackwardOfWhatSavedNothingIsFine) {
  Tensor x = leaf({2});
  const Tensor y = add(x, x);
  y.backward(ones({1}));
  y.backward(ones({1}));
  EXPECT_EQ(values_of(x.grad()), (Values{4}));
}

TEST(EngineErrors, RetainedGraphRunsAgain) {
  Tensor x = leaf({2});
  const Tensor y = mul(x, x).sum();
  y.backward(Tensor(), /*retain_graph=*/true);
  y.backward();
  EXPECT_EQ(values_of(x.grad()), (Values{8}));
}

TEST(EngineErrors, SavedTensorChangedInPlace) {
  Tensor x = leaf({2});
  const Tensor a = mul(x, 3.0), y = mul(a, a).sum();
  {
    const NoGradGuard guard;
    add_(a, 1.0);
  }
  const std::string message = message_of([&] { y.backward(); });
  EXPECT_TRUE(message.starts_with(
      "one of the variables needed for gradient computation has been modified by an inplace operation: [float32 [1]]"))
      << message;
  EXPECT_NE(message.find("is at version 1; expected version 0 instead"), std::string::npos) << message;
}

TEST(EngineErrors, ChangeThroughDetachIsSeenThroughDataIsNot) {
  Tensor x = leaf({2});
  const Tensor a = exp(x), y = a.sum();
  add_(a.data(), 1.0);
  y.backward(Tensor(), /*retain_graph=*/true);
  add_(a.detach(), 1.0);
  EXPECT_NE(message_of([&] { y.backward(); }), "no error");
}

TEST(EngineErrors, NeedsAScalarOrAGradient) {
  Tensor x = leaf({1, 2});
  EXPECT_EQ(message_of([&] { mul(x, 2.0).backward(); }), "grad can be implicitly created only for scalar outputs");
  EXPECT_TRUE(message_of([&] { mul(x, 2.0).backward(ones({3})); }).starts_with("Mismatch in shape"));
}

TEST(EngineErrors, NothingToDifferentiate) {
  EXPECT_EQ(message_of([] { ones({1}).backward(); }),
            "element 0 of tensors does not require grad and does not have a grad_fn");
}

TEST(EngineErrors, RequiresGradIsForFloatingLeaves) {
  EXPECT_TRUE(message_of([] {
                ones({1}, kInt64).requires_grad_();
              }).starts_with("only Tensors of floating point and complex dtype can require gradients"));
  Tensor x = leaf({1});
  Tensor y = mul(x, 2.0);
  EXPECT_TRUE(
      message_of([&] { y.requires_grad_(false); }).starts_with("you can only change requires_grad flags of leaf"));
}

TEST(EngineInplace, LeafIsRefused) {
  Tensor x = leaf({1, 2});
  EXPECT_EQ(message_of([&] { add_(x, 1.0); }),
            "a leaf Variable that requires grad is being used in an in-place operation.");
  EXPECT_EQ(message_of([&] { add_(narrow(x, 0, 0, 1), 1.0); }),
            "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  const NoGradGuard guard;
  add_(x, 1.0);
  EXPECT_EQ(values_of(x), (Values{2, 3}));
}

TEST(EngineInplace, ChangesTheHistory) {
  Tensor x = leaf({1, 2});
  const Tensor y = mul(x, 2.0);
  mul_(y, 3.0);
  y.sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{6, 6}));
}

TEST(EngineInplace, ThroughAViewChangesTheBase) {
  Tensor x = leaf({1, 2, 3});
  const Tensor y = mul(x, 2.0);
  mul_(narrow(y, 0, 1, 1), 10.0);
  y.sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{2, 20, 2}));
}

TEST(EngineInplace, ThroughAViewOfATransposedBase) {
  Tensor x = leaf({{1, 2}, {3, 4}, {5, 6}});
  const Tensor y = mul(x, 1.0).t();
  mul_(select(y, 0, 1), 5.0);
  y.sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{1, 5, 1, 5, 1, 5}));
}

TEST(EngineInplace, BaseWithoutGradientGetsOneThroughAView) {
  Tensor w = leaf({4});
  const Tensor base = zeros({3});
  const Tensor view = narrow(base, 0, 1, 1), other = narrow(base, 0, 1, 2);
  add_(view, w);
  EXPECT_TRUE(base.requires_grad());
  EXPECT_TRUE(view.requires_grad());
  EXPECT_TRUE(other.requires_grad());
  add(mul(base, 2.0).sum(), other.sum()).backward();
  EXPECT_EQ(values_of(w.grad()), (Values{3}));
}

TEST(EngineInplace, EarlierViewSeesALaterChangeOfItsBase) {
  Tensor x = leaf({1, 2});
  const Tensor base = mul(x, 1.0), view = narrow(base, 0, 0, 1);
  mul_(base, 3.0);
  view.sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{3, 0}));
}

TEST(EngineInplace, RootThatIsAViewOfAChangedBase) {
  Tensor x = leaf({1, 2});
  const Tensor base = mul(x, 3.0), view = select(base, 0, 1);
  mul_(base, 2.0);
  view.backward();
  EXPECT_EQ(values_of(x.grad()), (Values{0, 6}));
  // A change that is not recorded: only the version tells of it.
  x.set_grad(Tensor());
  const Tensor product = select(mul(x, 3.0), 0, 1);
  mul_(product.detach(), 0.5);
  product.backward();
  EXPECT_EQ(values_of(x.grad()), (Values{0, 3}));
  EXPECT_EQ(values_of(grad({select(mul(x, 5.0), 0, 0)}, {x})[0].values), (Values{5, 0}));
}

TEST(EngineInplace, ViewThatIsLookedAtWithoutGradientsKeepsItsHistory) {
  const auto gradient = [](auto look) {
    Tensor x = leaf({1, 2});
    const Tensor base = mul(x, 3.0);
    Tensor view = select(base, 0, 1);
    mul_(base, 2.0);
    look(view);
    mul(view, 2.0).backward();
    return values_of(x.grad());
  };
  const Values want{0, 12};
  EXPECT_EQ(gradient([](Tensor& t) {
              const NoGradGuard guard;
              EXPECT_FALSE(t.is_leaf());
            }),
            want);
  EXPECT_EQ(gradient([](Tensor& t) {
              const InferenceMode guard;
              EXPECT_EQ(grad_fn(t)->num_edges(), 1u);
            }),
            want);
  EXPECT_EQ(gradient([](Tensor& t) {
              const NoGradGuard guard;
              t.retain_grad();
            }),
            want);
  EXPECT_EQ(gradient([](Tensor& t) {
              const NoRecordGuard guard;
              mul_(t.detach(), 2.0);
              EXPECT_TRUE(grad_fn(t)->edge(0).defined());
            }),
            want);
}

TEST(EngineInplace, ViewMadeWithoutGradientsIsRefused) {
  Tensor x = leaf({1, 2});
  const Tensor base = mul(x, 1.0);
  Tensor view;
  {
    const NoGradGuard guard;
    view = narrow(base, 0, 0, 1);
  }
  EXPECT_TRUE(message_of([&] { mul_(view, 2.0); }).starts_with("A view was created in no_grad mode"));
}

TEST(EngineInplace, ViewMadeWithoutGradientsPassesNone) {
  Tensor x = leaf({1, 2});
  const Tensor base = mul(x, 3.0);
  Tensor view;
  {
    const NoGradGuard guard;
    view = base.view({2, 1}).view({2});
  }
  EXPECT_TRUE(view.requires_grad());
  EXPECT_FALSE(grad_fn(view).defined());
  sub(base, view).sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{3, 3})) << "what was subtracted counts as a constant";
  mul_(base, 2.0);
  EXPECT_TRUE(message_of([&] { view.sum(); }).starts_with("A view was created in no_grad mode and its base"));
}

TEST(EngineInplace, PartsOfASplitAreRefused) {
  Tensor x = leaf({1, 2});
  const std::vector<Tensor> parts = split(mul(x, 1.0), 1);
  EXPECT_TRUE(message_of([&] { mul_(parts[1], 2.0); }).starts_with("Output 1 of SplitBackward0 is a view"));
}

TEST(EngineThreads, PassesOnSeveralThreadsShareLeaves) {
  Tensor x = leaf({1, 2});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&x] {
      for (int i = 0; i < 100; ++i) mul(x, 1.0).sum().backward();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(values_of(x.grad()), (Values{400, 400}));
}

// Eight threads, after a view's base has changed, first use the view at the same time.
void use_on_threads(const Tensor& view, const Tensor& w, const Values& expected) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&view] {
      EXPECT_TRUE(view.requires_grad());
      mul(view, 2.0).sum().backward({}, /*retain_graph=*/true);
      EXPECT_FALSE(view.is_leaf());
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(values_of(w.grad()), expected);
}

TEST(EngineThreads, ShareAViewWhoseBaseHasChanged) {
  for (int round = 0; round < 20; ++round) {
    Tensor w = leaf({1, 2, 3});
    const Tensor base = tensor({1.0, 1.0, 1.0});
    const Tensor view = narrow(base, 0, 1, 2);
    mul_(base, w);
    use_on_threads(view, w, {0, 16, 16});
    mul_(base, 3.0);
    clear_gradient(w);
    use_on_threads(view, w, {0, 48, 48});
  }
}

TEST(EngineThreads, BackwardOfSeparateGraphsAndOfOne) {
  Tensor x = leaf({1, 2});
  const Tensor shared = exp(mul(x, 0.0)).sum();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        mul(x, 2.0).sum().backward();
        shared.backward({}, /*retain_graph=*/true);
        const Tensor y = mul(x, x).sum();
        const Tensor g = grad(Span<Tensor>(&y, 1), Span<Tensor>(&x, 1), {}, {}, /*create_graph=*/true)[0].values;
        g.sum().backward();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(values_of(x.grad()), (Values{4 * 50 * 4, 4 * 50 * 4}));
}

TEST(EngineInplace, ViewWithMetadataSeesALaterChangeOfItsBase) {
  Tensor w = leaf({1, 2});
  const Tensor base = tensor({1.0, 1.0});
  Tensor before = narrow(base, 0, 0, 1), after = narrow(base, 0, 1, 1);
  before.set_grad(tensor({5.0}));
  mul_(base, w);
  after.set_grad(tensor({5.0}));
  EXPECT_TRUE(before.requires_grad() && after.requires_grad());
  add(before, mul(after, 3.0)).sum().backward();
  EXPECT_EQ(values_of(w.grad()), (Values{1, 3}));
}

TEST(Engine, LongChainsOfViewsAndInPlaceChangesNeedNoStack) {
  Tensor x = leaf({1, 1});
  const Tensor y = mul(x, 1.0);
  for (int i = 0; i < 100'000; ++i) mul_(narrow(y, 0, 0, 1), 1.0);
  y.sum().backward();
  EXPECT_EQ(values_of(x.grad()), (Values{1, 1}));
}

TEST(EngineThreads, GradModeIsPerThread) {
  const NoGradGuard guard;
  bool other = false;
  std::thread([&other] { other = grad_enabled(); }).join();
  EXPECT_TRUE(other);
}

TEST(Engine, DetachHasNoHistoryAndSharesData) {
  Tensor x = leaf({1});
  const Tensor y = mul(x, 2.0), d = y.detach();
  EXPECT_FALSE(d.requires_grad());
  EXPECT_TRUE(d.is_alias_of(y));
  add_(d, 1.0);
  EXPECT_EQ(y.version(), 1u);
  const Tensor data = y.data();
  add_(data, 1.0);
  EXPECT_EQ(y.version(), 1u);
  EXPECT_EQ(data.version(), 1u);
}

}  // namespace
}  // namespace tercel
