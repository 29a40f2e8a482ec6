#include "tercel/util/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace tercel {
namespace {

struct KnownAnswer {
  PhiloxBlock counter;
  uint64_t key;
  PhiloxBlock expected;
};

// philox4x32 with 10 rounds, from the file kat_vectors of Random123, the authors' own implementation.
constexpr KnownAnswer kKnownAnswers[] = {
    {{{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
    {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
     0xffffffffffffffff,
     {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
    {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
     0x299f31d0a4093822,
     {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
};

TEST(Philox, KnownAnswers) {
  for (const KnownAnswer& known : kKnownAnswers) {
    const PhiloxBlock block = philox4x32(known.counter, known.key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(block.word[i], known.expected.word[i]);
  }
  static_assert(philox4x32({{0, 0, 0, 0}}, 0).word[0] == 0x6627e8d5);
}

TEST(Philox, CounterHoldsIndexAndStream) {
  const Philox random{.seed = 0x299f31d0a4093822, .stream = 0x0370734413198a2e};
  EXPECT_EQ(random(0x85a308d3243f6a88).word[0], 0xd16cfe09u);
}

TEST(Philox, SeedsStreamsAndIndicesDiffer) {
  std::set<uint32_t> words;
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (uint64_t stream = 0; stream < 10; ++stream)
      for (uint64_t index = 0; index < 10; ++index) words.insert(Philox{seed, stream}(index).word[0]);
  EXPECT_EQ(words.size(), 1000u);
}

TEST(Philox, UniformEndsAreExact) {
  EXPECT_EQ(uniform_f32(0), 0.0f);
  EXPECT_EQ(uniform_f32(0xffffffff), 1.0f - 0x1p-24f);
  EXPECT_EQ(uniform_f32(0x100), 0x1p-24f);
  EXPECT_EQ(uniform_f64(0), 0.0);
  EXPECT_EQ(uniform_f64(~uint64_t{0}), 1.0 - 0x1p-53);
  EXPECT_EQ(uniform_f64(uint64_t{1} << 11), 0x1p-53);
}

TEST(Philox, UniformIntStaysInRangeAndReachesAll) {
  EXPECT_EQ(uniform_int(~uint64_t{0}, 10), 9u);
  EXPECT_EQ(uniform_int(0, 10), 0u);
  EXPECT_EQ(uniform_int(~uint64_t{0}, ~uint64_t{0}), ~uint64_t{0} - 1);
  EXPECT_EQ(uniform_int(uint64_t{1} << 63, ~uint64_t{0}), (~uint64_t{0}) >> 1);
  std::vector<int> counts(7);
  for (uint64_t i = 0; i < 7000; ++i) {
    const PhiloxBlock block = Philox{1, 2}(i);
    ++counts[uniform_int(random_u64(block.word[0], block.word[1]), 7)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);  // 5 standard deviations
}

// Mean, variance and tails over a fixed stream: tests the formulas, not randomness.
TEST(Philox, NormalHasItsMoments) {
  constexpr int kPairs = 200'000;
  double sum32 = 0, squares32 = 0, sum64 = 0, squares64 = 0, product = 0;
  int beyond_two = 0;
  for (int i = 0; i < kPairs; ++i) {
    const PhiloxBlock block = Philox{7, 0}(static_cast<uint64_t>(i));
    const NormalPairF32 a = normal_f32(block.word[0], block.word[1]);
    const NormalPairF64 b =
        normal_f64(random_u64(block.word[0], block.word[1]), random_u64(block.word[2], block.word[3]));
    for (const float x : {a.first, a.second}) sum32 += x, squares32 += x * x, beyond_two += std::abs(x) > 2;
    for (const double x : {b.first, b.second}) sum64 += x, squares64 += x * x;
    product += b.first * b.second;
  }
  const double n = 2.0 * kPairs;
  EXPECT_NEAR(sum32 / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(sum64 / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares32 / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(squares64 / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(product / kPairs, 0, 5 / std::sqrt(kPairs));
  EXPECT_NEAR(beyond_two / n, 0.0455, 0.002);
}

TEST(Philox, NormalIsFiniteAtTheEnds) {
  for (const uint32_t first : {0u, 0xffffffffu})
    for (const uint32_t second : {0u, 0x40000000u, 0xffffffffu}) {
      const NormalPairF32 a = normal_f32(first, second);
      const NormalPairF64 b = normal_f64(random_u64(first, first), random_u64(second, second));
      EXPECT_TRUE(std::isfinite(a.first) && std::isfinite(a.second));
      EXPECT_TRUE(std::isfinite(b.first) && std::isfinite(b.second));
      EXPECT_LE(std::abs(a.first), 5.78f);
      EXPECT_LE(std::abs(b.first), 8.58);
    }
}

}  // namespace
}  // namespace tercel
