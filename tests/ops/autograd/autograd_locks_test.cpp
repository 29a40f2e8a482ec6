// Autograd calls and destroys no user objects under the process's mutexes; see Note [Locks and fork].
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "tercel/autograd/anomaly.h"
#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/record.h"
#include "tercel/ops/ops.h"
#include "tercel/util/process_mutex.h"
#include "tests/support/tensors.h"

namespace tercel {
namespace {

using test::values_of;
using Values = std::vector<double>;

/** Whether another thread could take every mutex now. */
bool no_mutex_is_held() {
  bool free = true;
  std::thread([&] {
    for (size_t i = 0; i < static_cast<size_t>(ProcessMutex::Count); ++i) {
      std::mutex& mutex = process_mutex(ProcessMutex::Gradients, i);
      if (mutex.try_lock())
        mutex.unlock();
      else
        free = false;
    }
  }).join();
  return free;
}

/** Simulates the destructor of a user's object, which takes a lock of the user's. */
struct Witness {
  int* deaths;
  explicit Witness(int& count) : deaths(&count) {}
  ~Witness() {
    EXPECT_TRUE(no_mutex_is_held());
    ++*deaths;
  }
};

/** A result of x whose node owns a user's object. */
Tensor with_witness(const Tensor& x, int& deaths) {
  Tensor out = clone(x.detach());
  record("WitnessBackward", out, {x},
         [witness = std::make_shared<Witness>(deaths)](BackwardCall& call) { call.set(0, call.take()); });
  return out;
}

TEST(AutogradLocksThreads, ReplacedHistoryOfAViewDiesWhenNoMutexIsHeld) {
  int deaths = 0;
  const Tensor x = ones({3}).requires_grad_(), w = ones({3}).requires_grad_();
  const Tensor base = with_witness(x, deaths), view = narrow(base, 0, 0, 2);
  ASSERT_TRUE(grad_fn(view).defined());
  base.detach_();  // now only the view's history leads to the node
  mul_(base, w);
  EXPECT_EQ(deaths, 0);
  EXPECT_TRUE(grad_fn(view).defined()) << "rebuilt from the base, and the old one is destroyed";
  EXPECT_EQ(deaths, 1);
}

TEST(AutogradLocksThreads, HooksOfALeafsFormerNodeDieWhenNoMutexIsHeld) {
  int deaths = 0;
  const Tensor x = ones({3}).requires_grad_();
  {
    const Edge edge = gradient_edge(x);
    edge.node->register_hook(
        [witness = std::make_shared<Witness>(deaths)](const std::vector<Tensor>&, const std::vector<Tensor>&) {
          return std::optional<std::vector<Tensor>>();
        });
  }
  std::thread([&] { EXPECT_TRUE(gradient_edge(x).defined()); }).join();
  EXPECT_EQ(deaths, 1);
}

TEST(AutogradLocksThreads, ReplacedGradientDiesWhenNoMutexIsHeld) {
  int deaths = 0;
  const Tensor x = ones({2}).requires_grad_();
  float values[2] = {1, 2};
  const auto free_values = [&](void*) {
    EXPECT_TRUE(no_mutex_is_held());
    ++deaths;
  };
  set_gradient(x, {from_blob(values, {2}, free_values, kFloat32), {}});
  mul(x, x).sum().backward({}, true, /*create_graph=*/true);
  EXPECT_EQ(deaths, 1) << "a sum that is part of a graph replaces the one before";
  EXPECT_EQ(values_of(x.grad()), (Values{3, 4}));
  clear_gradient(x);
}

TEST(AutogradLocksThreads, TraceOfAnomalyModeRunsWhenNoMutexIsHeld) {
  int calls = 0;
  set_anomaly_hooks({[&] {
                       ++calls;
                       EXPECT_TRUE(no_mutex_is_held());
                       return std::string("here");
                     },
                     {}});
  {
    const DetectAnomalyGuard anomaly;
    const Tensor x = ones({2}).requires_grad_();
    for (int pass = 0; pass < 2; ++pass) mul(x, x).sum().backward({}, true, /*create_graph=*/true);
    EXPECT_EQ(values_of(x.grad()), (Values{4, 4}));
    clear_gradient(x);
  }
  set_anomaly_hooks({});
  EXPECT_GT(calls, 4);
}

TEST(AutogradLocksThreads, GradientsOfEveryKindAddUpInSharedLeaves) {
  constexpr int kThreads = 4, kPasses = 50;
  const Tensor table = zeros({4, 2}).requires_grad_();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int pass = 0; pass < kPasses; ++pass) {
        if (t % 2 == 0)
          embedding(table, tensor({1, 3}, kInt64), {}, true).sum().backward();
        else
          table.sum().backward();
      }
    });
  for (std::thread& thread : threads) thread.join();
  const Tensor sum = zeros({4, 2});
  const Gradient found = gradient_of(table);
  ASSERT_TRUE(found.defined() && !found.is_rows());
  const double dense = kThreads / 2 * kPasses, both = 2 * dense;
  EXPECT_EQ(values_of(found.values), (Values{dense, dense, both, both, dense, dense, both, both}));
}

TEST(AutogradLocksThreads, GradientsAddUpWhileOthersHoldTheSum) {
  constexpr int kThreads = 4, kPasses = 100;
  const Tensor table = zeros({64, 8}).requires_grad_();
  table.sum().backward();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const Tensor rows = tensor({1, 3}, kInt64);
      for (int pass = 0; pass < kPasses; ++pass) {
        const Gradient held = gradient_of(table);  // sums are then computed in new tensors
        if (t % 2 == 0)
          embedding(table, rows, {}, true).sum().backward();
        else
          table.sum().backward({}, std::nullopt, /*create_graph=*/t == 3 && pass % 8 == 0);
      }
    });
  for (std::thread& thread : threads) thread.join();
  const double dense = 1 + kThreads / 2 * kPasses, both = dense + kThreads / 2 * kPasses;
  const Tensor found = gradient_of(table).values.detach();
  EXPECT_EQ(values_of(found.select(1, 0).narrow(0, 0, 4)), (Values{dense, both, dense, both}));
  clear_gradient(table);
}

TEST(AutogradLocksThreads, RecordedGradientsAddUpInSharedLeaves) {
  constexpr int kThreads = 4, kPasses = 25;
  const Tensor x = ones({2}).requires_grad_();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int pass = 0; pass < kPasses; ++pass) mul(x, x).sum().backward({}, true, /*create_graph=*/true);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(values_of(x.grad()), (Values{2 * kThreads * kPasses, 2 * kThreads * kPasses}));
  clear_gradient(x);
}

// Destroyed after the main thread's own objects, such as the list of dying nodes.
struct Outliving {
  Tensor graph;
};
Outliving& outliving() {
  static Outliving object;
  return object;
}

TEST(AutogradLocks, AStaticObjectMayHoldAGraph) {
  outliving();  // created first, destroyed last
  const Tensor x = ones({2}).requires_grad_();
  Tensor y = x;
  for (int i = 0; i < 10; ++i) y = mul(y, 2.0);
  outliving().graph = y;
  { const Tensor dies = mul(mul(x, 2.0), 3.0); }  // the thread's list has memory
}

}  // namespace
}  // namespace tercel
