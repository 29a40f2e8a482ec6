// Rows of a table over ranks.
#include "tercel/recsys/embedding/table_shard.h"

#include <gtest/gtest.h>

#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/recsys/embedding/static_table.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using test::make;
using test::values_of;

const auto kAlways = [] { return true; };

/** That the shards of all ranks have each row once, at the place that all of them know. */
void expect_partition(int64_t rows, const std::vector<TableShard>& shards) {
  std::vector<int> found(static_cast<size_t>(rows), 0);
  for (size_t rank = 0; rank < shards.size(); ++rank) {
    int64_t place = 0;
    for (const RowRun& run : shards[rank].runs())
      for (int64_t i = 0; i < run.count; ++i) {
        const int64_t row = run.first + i * run.step;
        ++found.at(static_cast<size_t>(row));
        for (const TableShard& shard : shards) {
          EXPECT_EQ(shard.owner(row), static_cast<int64_t>(rank));
          EXPECT_EQ(shard.place(row), place);
        }
        ++place;
      }
    EXPECT_EQ(shards[rank].rows(), place);
  }
  EXPECT_EQ(found, std::vector<int>(found.size(), 1));
}

TEST(TableShard, HasEachRowOnce) {
  for (const int64_t rows : {0, 1, 2, 10, 11}) {
    SCOPED_TRACE(rows);
    std::vector<TableShard> by_row, on_two;
    for (int64_t rank = 0; rank < 4; ++rank) {
      by_row.push_back(TableShard::by_row(rows, {0, 1, 2, 3}, rank));
      on_two.push_back(TableShard::by_row(rows, {2, 0}, rank));
    }
    expect_partition(rows, by_row);
    expect_partition(rows, on_two);
    EXPECT_EQ(on_two[1].rows(), 0);
  }
  for (const std::vector<int64_t>& ranks : {std::vector<int64_t>{0, 1, 2}, {2}, {1, 0}}) {
    std::vector<TableShard> by_slot;
    for (int64_t rank = 0; rank < 3; ++rank) by_slot.push_back(TableShard::by_slot({3, 3, 10, 11, 15}, ranks, rank));
    expect_partition(15, by_slot);
  }
  EXPECT_TRUE(TableShard().is_whole());
  EXPECT_TRUE(TableShard().is_own(7));
  TERCEL_EXPECT_THROW(TableShard::by_row(3, {}, 0), RuntimeError, "expected at least one rank");
  TERCEL_EXPECT_THROW(TableShard::by_slot({3, 2}, {0}, 0), RuntimeError, "ascending");
}

TEST(TableShard, RowsOfAPartHaveTheValuesOfTheWhole) {
  const std::vector<RowsInit> parts = {{5, nn::Init::uniform(0.5)}, {7, nn::Init::normal(2)}};
  StaticTable whole("t", 100, 3, parts);
  ASSERT_TRUE(whole.allocate(4, {}, {}, kAlways));
  const std::vector<double> expected = values_of(whole.weight().detach());
  for (const Placement placement : {Placement::Distributed, Placement::Localized})
    for (int64_t rank = 0; rank < 3; ++rank) {
      StaticTable part("t", 100, 3, parts);
      part.set_slots({2, 5, 6, 12});
      part.place({placement, {0, 1, 2}}, rank);
      EXPECT_EQ(part.size_text(), whole.size_text());
      ASSERT_TRUE(part.allocate(4, {}, {}, kAlways));
      const std::vector<double> keys = values_of(part.keys()), found = values_of(part.weight().detach());
      EXPECT_EQ(static_cast<int64_t>(keys.size()), part.rows());
      for (size_t i = 0; i < keys.size(); ++i)
        for (size_t column = 0; column < 3; ++column)
          EXPECT_EQ(found[3 * i + column], expected[3 * static_cast<size_t>(keys[i] - 100) + column]) << keys[i];
      // Others have no row here.
      const std::vector<double> rows = values_of(part.find_rows(make({2}, kInt64, {99, 112}), NewKeys::Refuse));
      EXPECT_EQ(rows, (std::vector<double>{-1, -1}));
      std::vector<int64_t> owners(2);
      EXPECT_TRUE(part.owners(std::vector<int64_t>{100, 111}, owners.data()));
      EXPECT_FALSE(part.owners(std::vector<int64_t>{100, 112}, owners.data()));
      TERCEL_EXPECT_THROW(part.place({}, 0), RuntimeError, "it has rows already");
      TERCEL_EXPECT_THROW(part.refuse_keys(make({1}, kInt64, {112})), IndexError, "no row for key 112");
    }
}

TEST(TableShard, HashedTablesAreDistributedByKey) {
  HashedTable table("t", 2, nn::Init::uniform(1), {.capacity = 10});
  table.place({Placement::Distributed, {0, 1, 2}}, 1);
  std::vector<int64_t> owners(3);
  EXPECT_TRUE(table.owners(std::vector<int64_t>{4, 5, -1}, owners.data()));
  EXPECT_EQ(owners, (std::vector<int64_t>{1, 2, 0}));  // -1 is 2^64 - 1
  ASSERT_TRUE(table.allocate(1, {}, {}, kAlways));
  table.find_rows(make({4}, kInt64, {1, 4, 7, 10}), NewKeys::Insert);  // its part of the capacity
  TERCEL_EXPECT_THROW(table.find_rows(make({1}, kInt64, {13}), NewKeys::Insert), RuntimeError, "(5) exceeds");
  HashedTable other("t", 2, nn::Init::uniform(1));
  TERCEL_EXPECT_THROW(other.place({Placement::Localized, {0, 1}}, 0), ConfigError, "replicated or distributed");
}

}  // namespace
}  // namespace tercel::recsys
