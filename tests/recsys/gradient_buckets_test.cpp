// Sums of dense gradients in parts that begin during backward.
#include "tercel/recsys/gradient_buckets.h"

#include <gtest/gtest.h>

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/reduce/reduce.h"
#include "tests/distributed/thread_ranks.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using distributed::ProcessGroup;
using distributed::test::run_ranks;
using test::values_of;

/** Four parameters of 16 elements. */
void fill(nn::ParameterArena& arena) {
  for (const char* name : {"a", "b", "c", "d"}) arena.reserve(name, {16}, nn::Init::uniform(1));
  Generator generator(7);
  arena.allocate(generator, kFloat64);
}

TEST(GradientBuckets, CoverTheArena) {
  nn::ParameterArena arena;
  fill(arena);
  const auto group = distributed::single_group();
  EXPECT_EQ(GradientBuckets(arena, *group, 1).size(), 4u);
  EXPECT_EQ(GradientBuckets(arena, *group, 129).size(), 2u) << "of 128 bytes, two together";
  EXPECT_EQ(GradientBuckets(arena, *group).size(), 1u);
  nn::ParameterArena none;
  none.allocate(kFloat64);
  GradientBuckets empty(none, *group);
  empty.begin();
  empty.finish();
  EXPECT_EQ(empty.size(), 0u);
  group->close();
}

TEST(RanksOnThreads, BucketsHaveTheSumOfAllRanks) {
  run_ranks(3, [](ProcessGroup& group) {
    nn::ParameterArena arena;
    fill(arena);
    GradientBuckets buckets(arena, group, 1);
    const auto backward = [&](double factor, bool uses_all) {
      arena.zero_gradients();
      Tensor loss = mul(sum(add(arena[0], mul(arena[2], 2))), factor * static_cast<double>(group.rank() + 1));
      if (uses_all) loss = add(loss, sum(mul(arena[1], 3)));
      loss.backward();
    };
    const auto expect = [&](const std::vector<double>& expected) {
      for (size_t p = 0; p < expected.size(); ++p)
        EXPECT_EQ(values_of(arena[p].grad()), std::vector<double>(16, expected[p])) << p;
    };
    buckets.begin();
    backward(1, true);
    buckets.finish();
    expect({6, 9, 12, 0});
    // Without begin(), and a backward of somebody else in between.
    backward(10, false);
    expect({10.0 * static_cast<double>(group.rank() + 1), 0, 20.0 * static_cast<double>(group.rank() + 1), 0});
    buckets.finish();
    expect({60, 0, 120, 0});
    // After one that was given up, the next has its own sums.
    buckets.begin();
    backward(100, true);
    buckets.begin();
    backward(1, false);
    buckets.finish();
    expect({6, 0, 12, 0});
  });
}

}  // namespace
}  // namespace tercel::recsys
