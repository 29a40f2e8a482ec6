// After the first few steps, a training step allocates no memory from operator new or the system.
#include <execinfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <set>

#include "tercel/core/allocator.h"
#include "tercel/recsys/session.h"
#include "tercel/util/sanitizers_impl.h"
#include "tests/recsys/training_data.h"

namespace tercel::recsys {
namespace {

constexpr int kMaxFrames = 48, kMaxCalls = 64;

/** The call stack of one call of operator new. */
struct Call {
  void* frames[kMaxFrames];
  int depth;
};

/** Calls of this thread while watching. */
struct Watch {
  bool on = false;
  int64_t news = 0;
  int count = 0;
  Call calls[kMaxCalls];
};
thread_local Watch watch;

void* allocate(size_t nbytes, size_t alignment) {
  if (watch.on) {
    watch.on = false;  // allocations for the stack trace are not counted
    ++watch.news;
    if (watch.count < kMaxCalls) {
      Call& call = watch.calls[watch.count++];
      call.depth = ::backtrace(call.frames, kMaxFrames);
    }
    watch.on = true;
  }
  void* p = nullptr;
  if (::posix_memalign(&p, std::max(alignment, sizeof(void*)), nbytes) != 0) throw std::bad_alloc();
  return p;
}

std::string describe(const Call& call) {
  std::string text;
  char** const names = ::backtrace_symbols(call.frames, call.depth);
  for (int i = 0; i < call.depth; ++i) text += std::string("  ") + names[i] + "\n";
  std::free(names);
  return text;
}

/** Runs steps of a preset on its batches; reports allocations of steps after the fifth. */
void expect_no_allocation(ModelConfig config, const data::Dataset& dataset,
                          const std::vector<std::string>& frozen = {}) {
  config.solver.epochs = 0;
  config.solver.max_iter = 1000;  // the reader has no end

  Session session(config, dataset);
  session.initialize();
  session.freeze(frozen);
  Call first;
  first.depth = ::backtrace(first.frames, kMaxFrames);  // its first call loads a library

  constexpr int64_t kWarmSteps = 5, kSteps = 40;
  for (int64_t step = 1; step <= kWarmSteps; ++step) {
    ASSERT_TRUE(session.step());
  }
  // Where others use the machine, threads may have more blocks at a time than they had before, but not again and again.
  int64_t misses = 1;
  for (int attempt = 0; attempt < 3 && misses > 0; ++attempt) {
    const AllocatorStats before = cpu_allocator_stats();
    watch.news = 0;
    watch.count = 0;
    for (int64_t step = 0; step < kSteps; ++step) {
      watch.on = true;
      const bool more = session.step();
      watch.on = false;
      ASSERT_TRUE(more);
    }
    misses = cpu_allocator_stats().misses - before.misses;
  }
  EXPECT_EQ(misses, 0);
  EXPECT_EQ(watch.news, 0);
  std::set<std::string> callers;
  for (int i = 0; i < watch.count; ++i) callers.insert(describe(watch.calls[i]));
  for (const std::string& caller : callers) ADD_FAILURE() << "a step calls operator new:\n" << caller;
}

TEST(StepAllocation, NoneInThePresets) {
#if TERCEL_ADDRESS_SANITIZER
  GTEST_SKIP() << "under AddressSanitizer the allocator keeps nothing";
#endif
  const test::CleanProcess clean;
  const test::TemporaryFolder root;
  const data::Dataset dataset = test::small_dataset(root, 20000);
  for (const int64_t threads : {1, 2}) {
    set_num_threads(threads);
    for (const std::string_view name : preset_names()) {
      if (name == "ffm") continue;  // the gradient of its gathered pairs sorts them in memory of its own
      SCOPED_TRACE(std::string(name) + ", threads: " + std::to_string(threads));
      expect_no_allocation(test::small_preset_config(name), dataset);
    }
  }
}

TEST(StepAllocation, NoneWithShortBatchesAndState) {
#if TERCEL_ADDRESS_SANITIZER
  GTEST_SKIP() << "under AddressSanitizer the allocator keeps nothing";
#endif
  const test::CleanProcess clean;
  set_num_threads(1);
  const test::TemporaryFolder root;
  const data::Dataset dataset = test::small_dataset(root, 300);  // 225 train rows: every fourth batch is short
  for (const char* rule : {"SGD", "MomentumSGD", "Adam", "AdaGrad", "Ftrl"}) {
    SCOPED_TRACE(rule);
    const ModelConfig config = test::stateful_config({std::string("optimizer.type=") + rule});
    expect_no_allocation(config, dataset);
    expect_no_allocation(config, dataset, {"normal", "e1"});
  }
}

TEST(StepAllocation, TheTestWouldSeeOne) {
  watch.news = 0;
  watch.count = 0;
  watch.on = true;
  const std::vector<int64_t> numbers(100, 1);
  watch.on = false;
  EXPECT_EQ(numbers.back(), 1);
  EXPECT_EQ(watch.news, 1);
}

}  // namespace
}  // namespace tercel::recsys

// The array and sized variants call these; AddressSanitizer's own nothrow variant would not. If inlined, the compiler
// would report mismatched new and delete.
[[gnu::noinline]] void* operator new(size_t nbytes) {
  return tercel::recsys::allocate(nbytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(size_t nbytes, std::align_val_t alignment) {
  return tercel::recsys::allocate(nbytes, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void* operator new(size_t nbytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(nbytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
