#include "tercel/recsys/embedding/table_shard.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tercel::recsys {
namespace {

TEST(TableShard, OwnersAndPlacesOfManyRowsAreThoseOfEach) {
  constexpr int64_t kRows = 1000;
  for (const int64_t ranks : {1, 2, 3, 4, 7, 8}) {
    std::vector<int64_t> order;  // not that of their numbers
    for (int64_t r = ranks; r-- > 0;) order.push_back(r);
    const TableShard shards[] = {TableShard::by_row(kRows, order, ranks - 1),
                                 TableShard::by_slot({10, 400, 400, kRows}, order, ranks - 1)};
    for (const TableShard& shard : shards) {
      if (shard.is_whole()) continue;
      std::vector<int64_t> rows;
      for (int64_t row = 0; row < kRows; row += 3) rows.push_back(row);
      std::vector<int64_t> owners = rows, places = rows;
      shard.replace_by_owners(owners.data(), owners.size());
      places.push_back(-1);
      shard.replace_by_own_places(places.data(), places.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(owners[i], shard.owner(rows[i]));
        EXPECT_EQ(places[i], shard.is_own(rows[i]) ? shard.place(rows[i]) : -1) << rows[i] << " of " << ranks;
      }
      EXPECT_EQ(places.back(), -1);
    }
  }
}

}  // namespace
}  // namespace tercel::recsys
