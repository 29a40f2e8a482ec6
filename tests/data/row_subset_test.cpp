#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tercel/data/row_subset_impl.h"

namespace tercel::data {
namespace {

std::vector<bool> members(const RowSubset& subset, int64_t rows) {
  std::vector<bool> result(static_cast<size_t>(rows));
  for (int64_t i = 0; i < subset.count(); ++i) {
    const int64_t row = subset.row(i);
    EXPECT_GE(row, 0);
    EXPECT_LT(row, rows);
    EXPECT_FALSE(result[static_cast<size_t>(row)]);
    result[static_cast<size_t>(row)] = true;
    EXPECT_EQ(subset.before(row), i);
    EXPECT_EQ(subset.before(row + 1), i + 1);
  }
  return result;
}

TEST(RowSubset, EachRowIsHeldOutOrLeft) {
  for (const int64_t rows : {0, 1, 2, 9, 10, 11, 19, 100, 1003})
    for (const int64_t every : {2, 3, 10, 2000}) {
      const std::vector<bool> left = members(RowSubset(rows, every, false), rows);
      const std::vector<bool> held_out = members(RowSubset(rows, every, true), rows);
      int64_t count = 0;
      for (size_t row = 0; row < left.size(); ++row) {
        EXPECT_NE(left[row], held_out[row]) << rows << " " << every << " " << row;
        count += held_out[row] ? 1 : 0;
      }
      EXPECT_GE(count, rows / every);
      EXPECT_LE(count, (rows + every - 1) / every);
    }
}

TEST(RowSubset, AllRowsAreTheirOwnIndices) {
  const RowSubset all = 7;
  EXPECT_TRUE(all.is_all());
  EXPECT_EQ(all.count(), 7);
  EXPECT_EQ(all.row(3), 3);
  EXPECT_EQ(all.before(3), 3);
}

// Periodic files (a positive row after every nine negatives, say) must not have all rows of one kind held out.
TEST(RowSubset, EveryPlaceOfAGroupIsHeldOutEquallyOften) {
  constexpr int64_t kGroups = 100'000, kEvery = 10;
  std::vector<int64_t> hits(kEvery);
  const RowSubset subset(kGroups * kEvery, kEvery, true);
  ASSERT_EQ(subset.count(), kGroups);
  for (int64_t i = 0; i < kGroups; ++i) ++hits[static_cast<size_t>(subset.row(i) % kEvery)];
  for (const int64_t n : hits) EXPECT_LT(std::abs(static_cast<double>(n) - 10'000.0), 5 * std::sqrt(10'000.0 * 0.9));
}

TEST(RowSubset, IsAFunctionOfRowsAndShare) {
  const RowSubset subset(40, 10, true);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < subset.count(); ++i) rows.push_back(subset.row(i));
  EXPECT_EQ(rows, (std::vector<int64_t>{3, 10, 27, 38}));  // checkpoints and reports refer to these rows
}

}  // namespace
}  // namespace tercel::data
