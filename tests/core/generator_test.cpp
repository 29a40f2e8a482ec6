#include "tercel/core/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace tercel {
namespace {

TEST(Generator, StartsAtItsSeed) {
  EXPECT_EQ(Generator().state(), (GeneratorState{0, 0}));
  EXPECT_EQ(Generator(7).state(), (GeneratorState{7, 0}));
}

TEST(Generator, ReserveHandsOutConsecutiveRanges) {
  Generator g(7);
  EXPECT_EQ(g.reserve(10), (GeneratorState{7, 0}));
  EXPECT_EQ(g.reserve(1), (GeneratorState{7, 10}));
  EXPECT_EQ(g.reserve(0), (GeneratorState{7, 11}));
  EXPECT_EQ(g.state(), (GeneratorState{7, 11}));
}

TEST(Generator, SeedRestarts) {
  Generator g(7);
  g.reserve(10);
  g.set_seed(8);
  EXPECT_EQ(g.reserve(1), (GeneratorState{8, 0}));
}

TEST(Generator, StateContinues) {
  Generator g(7);
  g.reserve(10);
  const GeneratorState saved = g.state();
  const GeneratorState next = g.reserve(5);
  Generator other;
  other.set_state(saved);
  EXPECT_EQ(other.reserve(5), next);
  EXPECT_EQ(other.state(), g.state());
}

TEST(Generator, DefaultOneIsShared) {
  const GeneratorState before = default_generator().state();
  manual_seed(99);
  EXPECT_EQ(&default_generator(), &default_generator());
  EXPECT_EQ(default_generator().reserve(3), (GeneratorState{99, 0}));
  default_generator().set_state(before);
}

TEST(Generator, DrawsAgainWhatWasNoted) {
  const GeneratorState before = default_generator().state();
  manual_seed(5);
  default_generator().reserve(2);
  Draws draws, inner;
  {
    const RecordDraws record(draws);
    default_generator().reserve(3);
    {
      const RecordDraws also(inner);
      default_generator().reserve(4);
    }
    Generator other(1);
    other.reserve(100);
    manual_seed(6);
    default_generator().reserve(1);
  }
  default_generator().reserve(10);
  EXPECT_EQ(draws.start, (GeneratorState{5, 2}));
  EXPECT_EQ(draws.ranges, (std::vector<GeneratorState>{{5, 2}, {5, 5}, {6, 0}}));
  EXPECT_EQ(inner.start, (GeneratorState{5, 5}));
  EXPECT_EQ(inner.ranges, (std::vector<GeneratorState>{{5, 5}}));
  {
    Draws outside;
    const RecordDraws record(outside);
    const ReplayDraws replay(draws);
    std::thread([] { EXPECT_EQ(default_generator().state(), (GeneratorState{6, 11})); }).join();
    EXPECT_EQ(default_generator().state(), draws.start);
    for (const GeneratorState& range : draws.ranges) EXPECT_EQ(default_generator().reserve(1), range);
    EXPECT_EQ(default_generator().reserve(7), (GeneratorState{6, 1})) << "it continues from there";
    EXPECT_EQ(default_generator().reserve(1), (GeneratorState{6, 8}));
    EXPECT_TRUE(outside.ranges.empty()) << "nothing is taken from the generator outside";
  }
  EXPECT_EQ(default_generator().state(), (GeneratorState{6, 11}));
  default_generator().set_state(before);
}

TEST(GeneratorThreads, RangesDoNotMeet) {
  Generator g(1);
  std::vector<std::vector<uint64_t>> starts(4);
  std::vector<std::thread> threads;
  for (std::vector<uint64_t>& own : starts)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) own.push_back(g.reserve(3).offset);
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> all;
  for (const std::vector<uint64_t>& own : starts) all.insert(all.end(), own.begin(), own.end());
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], 3 * i);
}

}  // namespace
}  // namespace tercel
