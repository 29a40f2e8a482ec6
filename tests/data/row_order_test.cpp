#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "tercel/data/row_order_impl.h"

namespace tercel::data {
namespace {

/** The rows of an epoch in their order, window by window. */
std::vector<int64_t> rows_of(const RowOrder& order, int64_t epoch) {
  std::vector<int64_t> result;
  std::vector<RowRange> ranges;
  std::vector<uint32_t> mix;
  for (int64_t window = 0; window < order.num_windows(); ++window) {
    EXPECT_EQ(order.window_begin(epoch, window), static_cast<int64_t>(result.size()));
    order.ranges(epoch, window, ranges);
    order.mix(epoch, window, mix);
    std::vector<int64_t> loaded;
    for (const RowRange& range : ranges)
      for (int64_t i = 0; i < range.count; ++i) loaded.push_back(range.begin + i);
    EXPECT_EQ(mix.size(), order.is_mixed() ? loaded.size() : 0u);
    for (size_t i = 0; i < loaded.size(); ++i) result.push_back(loaded[mix.empty() ? i : mix[i]]);
    EXPECT_EQ(order.window_end(epoch, window), static_cast<int64_t>(result.size()));
  }
  return result;
}

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> result(static_cast<size_t>(count));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

TEST(Permutation, IsOneToOneAndItsInverseUndoesIt) {
  for (const int64_t count : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 1000, 4097}) {
    const Permutation permutation(count, 99);
    std::vector<int64_t> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(permutation(i));
      ASSERT_EQ(permutation.inverse(values.back()), i);
    }
    std::sort(values.begin(), values.end());
    EXPECT_EQ(values, numbers(count));
  }
  const Permutation huge((int64_t{1} << 40) + 12345, 7);
  for (int64_t i = 0; i < 100; ++i) {
    const int64_t value = huge(i * 10'000'000'019 % (int64_t{1} << 40));
    EXPECT_GE(value, 0);
    EXPECT_LE(value, (int64_t{1} << 40) + 12345);
    EXPECT_EQ(huge.inverse(value), i * 10'000'000'019 % (int64_t{1} << 40));
  }
}

// Chi-squared over keys: each index moves to each position equally often, and so does each pair of neighbours.
TEST(Permutation, KeysMakeAllOrdersAlikeFrequent) {
  for (const int64_t count : {2, 3, 5, 8, 13}) {
    constexpr int64_t kKeys = 20000;
    std::vector<int64_t> hits(static_cast<size_t>(count * count));
    std::map<std::pair<int64_t, int64_t>, int64_t> pairs;
    for (int64_t key = 0; key < kKeys; ++key) {
      const Permutation permutation(count, static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15u);
      for (int64_t i = 0; i < count; ++i) ++hits[static_cast<size_t>(i * count + permutation(i))];
      ++pairs[{permutation(0), permutation(1)}];
    }
    const auto worst = [](double observed, double expected) {
      return std::abs(observed - expected) / std::sqrt(expected);
    };
    for (const int64_t n : hits)
      EXPECT_LT(worst(static_cast<double>(n), static_cast<double>(kKeys) / static_cast<double>(count)), 5) << count;
    EXPECT_EQ(static_cast<int64_t>(pairs.size()), count * (count - 1));
    for (const auto& [pair, n] : pairs)
      EXPECT_LT(worst(static_cast<double>(n), static_cast<double>(kKeys) / static_cast<double>(count * (count - 1))), 5)
          << count << ": " << pair.first << ", " << pair.second;
  }
}

TEST(RowOrder, WithoutShufflingItIsThatOfTheFiles) {
  for (const int64_t rows : {1, 99, 100, 101, 1000}) {
    const RowOrder order = RowOrder::in_order(RowWindows::every(rows, 100));
    EXPECT_EQ(rows_of(order, 3), numbers(rows));
    for (int64_t row = 0; row < rows; ++row) ASSERT_EQ(order.window_of(3, row), row / 100);
  }
}

TEST(RowOrder, ShuffledEveryRowComesOnceInEveryEpoch) {
  for (const int64_t rows : {1, 5, 64, 100, 1000, 1023, 1024, 1025}) {
    for (const auto& [window, block] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {64, 8}, {100, 7}, {128, 128}, {5000, 3}, {10, 50}}) {
      const RowOrder order = RowOrder::shuffled(rows, 5, window, block);
      std::set<std::vector<int64_t>> orders;
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        std::vector<int64_t> got = rows_of(order, epoch);
        for (int64_t position = 0; position < rows; ++position) {
          const int64_t w = order.window_of(epoch, position);
          ASSERT_LE(order.window_begin(epoch, w), position);
          ASSERT_GT(order.window_end(epoch, w), position);
        }
        orders.insert(got);
        std::sort(got.begin(), got.end());
        ASSERT_EQ(got, numbers(rows)) << rows << " " << window << " " << block;
      }
      if (rows >= 64 && (window > 1 || block > 1)) {
        EXPECT_EQ(orders.size(), 3u) << rows << " " << window << " " << block;
      }
    }
  }
}

TEST(RowOrder, AShuffledOrderIsAFunctionOfSeedEpochAndSizes) {
  const std::vector<int64_t> first = rows_of(RowOrder::shuffled(500, 1, 100, 10), 0);
  EXPECT_EQ(first, rows_of(RowOrder::shuffled(500, 1, 100, 10), 0));
  EXPECT_NE(first, rows_of(RowOrder::shuffled(500, 2, 100, 10), 0));
  EXPECT_NE(first, rows_of(RowOrder::shuffled(500, 1, 100, 10), 1));
  EXPECT_NE(first, rows_of(RowOrder::shuffled(500, 1, 200, 10), 0));
  EXPECT_NE(first, rows_of(RowOrder::shuffled(500, 1, 100, 20), 0));
}

TEST(RowOrder, ShuffledBlocksKeepTheirRowsAndTheShortOneIsLast) {
  for (const int64_t rows : {1, 4, 5, 63, 64, 1000}) {
    const RowOrder order = RowOrder::shuffled_blocks(rows, 7, 5);
    std::set<std::vector<int64_t>> orders;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      const std::vector<int64_t> got = rows_of(order, epoch);
      for (int64_t position = 0; position < rows; ++position) {
        ASSERT_EQ(order.window_of(epoch, position), position / 5);
        if (position % 5 > 0) {
          ASSERT_EQ(got[static_cast<size_t>(position)], got[static_cast<size_t>(position - 1)] + 1);
        }
        if (position >= rows / 5 * 5) {
          ASSERT_EQ(got[static_cast<size_t>(position)], position);
        }
      }
      orders.insert(got);
      std::vector<int64_t> sorted = got;
      std::sort(sorted.begin(), sorted.end());
      ASSERT_EQ(sorted, numbers(rows));
    }
    if (rows > 60) {
      EXPECT_EQ(orders.size(), 3u);
    }
  }
}

// Checkpoints depend on the order: these numbers must never change.
TEST(RowOrder, TheOrderOfASeedStays) {
  const std::vector<int64_t> got = rows_of(RowOrder::shuffled(20, 42, 8, 2), 1);
  EXPECT_EQ(got, (std::vector<int64_t>{17, 6, 16, 5, 10, 11, 7, 4, 12, 15, 1, 13, 14, 2, 0, 3, 19, 18, 9, 8}));
}

// A window with all rows is a full shuffle: every row is equally likely at every position.
TEST(RowOrder, OneWindowMixesEvenly) {
  constexpr int64_t kRows = 12;
  constexpr int64_t kSeeds = 12000;
  std::vector<int64_t> hits(kRows * kRows);
  for (int64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<int64_t> rows = rows_of(RowOrder::shuffled(kRows, static_cast<uint64_t>(seed), 100, 5), 0);
    for (int64_t place = 0; place < kRows; ++place)
      ++hits[static_cast<size_t>(place * kRows + rows[static_cast<size_t>(place)])];
  }
  for (const int64_t n : hits) EXPECT_NEAR(static_cast<double>(n), kSeeds / kRows, 5 * std::sqrt(kSeeds / kRows));
}

}  // namespace
}  // namespace tercel::data
