// Rows in the order of their keys, of tables on several ranks, which are threads here.
#include "tercel/recsys/table_order.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/recsys/embedding/static_table.h"
#include "tercel/recsys/embedding/table_rows.h"
#include "tercel/recsys/ranks.h"
#include "tests/distributed/thread_ranks.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using distributed::ProcessGroup;
using distributed::test::run_ranks;
using tercel::test::message_of;
using tercel::test::values_of;

using Values = std::vector<double>;

const nn::Init kInit = nn::Init::uniform(0.5);

/** Keys of a table, and vectors that say which key they are of. */
void set_numbers(EmbeddingTable& table, const Values& keys) {
  const auto n = static_cast<int64_t>(keys.size());
  Tensor of_keys = empty({n}, kInt64), vectors = empty({n, 2}, kFloat32);
  for (int64_t i = 0; i < n; ++i) {
    const double key = keys[static_cast<size_t>(i)];
    of_keys.data<int64_t>()[i] = static_cast<int64_t>(key);
    vectors.data<float>()[2 * i] = static_cast<float>(key);
    vectors.data<float>()[2 * i + 1] = static_cast<float>(-key);
  }
  set_vectors(table, of_keys, vectors);
}

/** That rank 0 gets all keys, ascending, and their vectors, whatever fits at once. */
void expect_order(EmbeddingTable& table, ProcessGroup& group, const Values& keys) {
  Values vectors;
  for (const double key : keys) vectors.insert(vectors.end(), {key, -key});
  for (const int64_t at_once : {1, 5, 1 << 20}) {
    const RowOrder order = order_of_keys(table, &group, at_once);
    EXPECT_EQ(order.count, static_cast<int64_t>(keys.size()));
    Values found_keys, found;
    const auto append = [](Values& all, const Tensor& window) {
      const Values values = values_of(window);
      all.insert(all.end(), values.begin(), values.end());
    };
    take_keys(order, &group, [&](const Tensor& window) { append(found_keys, window); });
    take_in_order(
        order, &group, 2,
        [&](int64_t first, int64_t n) {
          return index_select(table.weight().detach(), 0, order.rows.narrow(0, first, n));
        },
        [&](const Tensor& window) {
          EXPECT_LE(window.numel(), std::max<int64_t>(2, at_once));
          append(found, window);
        },
        at_once);
    EXPECT_EQ(found_keys, group.rank() == 0 ? keys : Values());
    EXPECT_EQ(found, group.rank() == 0 ? vectors : Values());
  }
}

Values range(int64_t first, int64_t count) {
  Values all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), static_cast<double>(first));
  return all;
}

TEST(TableOrderOnThreads, RowsOfARangeAreInTheOrderOfTheirKeys) {
  for (const int64_t ranks : {1, 2, 3, 4}) {
    for (const TablePlacement& placement : {TablePlacement{},
                                            TablePlacement{Placement::Distributed, {0}},
                                            {Placement::Distributed, {ranks - 1, 0}},
                                            {Placement::Localized, {ranks - 1, 0}},
                                            {Placement::Localized, {ranks - 1}}}) {
      if (ranks == 1 && placement.ranks.size() > 1) continue;
      run_ranks(ranks, [&](ProcessGroup& group) {
        StaticTable table("t", 5, 17, 2, kInit);
        table.set_slots({4, 4, 9, 17});
        table.place(placement, group.rank());
        ASSERT_TRUE(table.allocate(1, {}, {}, [] { return true; }));
        set_numbers(table, range(5, 17));
        expect_order(table, group, range(5, 17));
      });
    }
  }
}

TEST(TableOrderOnThreads, KeysOfTablesThatGrowAreMerged) {
  const Values keys = {-7, -3, -2, 0, 3, 6, 9, 12, 15, 16, 18, 100, 1000};
  for (const int64_t ranks : {1, 2, 3, 4}) {
    for (const TablePlacement& placement :
         {TablePlacement{}, TablePlacement{Placement::Distributed, {0}}, {Placement::Distributed, {ranks - 1, 0}}}) {
      if (ranks == 1 && placement.ranks.size() > 1) continue;
      run_ranks(ranks, [&](ProcessGroup& group) {
        HashedTable table("t", 2, kInit);
        table.place(placement, group.rank());
        ASSERT_TRUE(table.allocate(1, {}, {}, [] { return true; }));
        expect_order(table, group, {});
        set_numbers(table, {16, 18, 1000, -3, -2, 0, 15, 12, 9, -7, 6, 3, 100});
        expect_order(table, group, keys);
      });
    }
  }
}

TEST(TableOrderOnThreads, AnErrorOfOneRankIsOneOfAll) {
  run_ranks(3, [](ProcessGroup& group) {
    StaticTable table("t", 0, 20, 2, kInit);
    table.place({Placement::Distributed, {0, 1, 2}}, group.rank());
    ASSERT_TRUE(table.allocate(1, {}, {}, [] { return true; }));
    const RowOrder order = order_of_keys(table, &group);
    const auto rows = [&](int64_t first, int64_t n) {
      return index_select(table.weight().detach(), 0, order.rows.narrow(0, first, n));
    };
    int taken = 0;
    const auto take = [&](const Tensor&) { ++taken; };
    const auto of_the_second = [&](int64_t first, int64_t n) {
      TERCEL_CHECK(group.rank() != 1 || first < 3, DataError, "no more");
      return rows(first, n);
    };
    const auto in_parts = [&](auto&& of, auto&& f) { take_in_order(order, &group, 2, of, f, 8); };
    if (group.rank() == 1)
      EXPECT_EQ(message_of<DataError>([&] { in_parts(of_the_second, take); }), "no more");
    else
      EXPECT_EQ(message_of<IoError>([&] { in_parts(of_the_second, take); }), "rank 1 of 3: no more");
    EXPECT_EQ(taken, group.rank() == 0 ? 2 : 0) << "four rows at once; it has 1, then 4 and 7, then 10";
    const auto full = [](const Tensor&) { throw_error<IoError>({"the disk is full"}); };
    EXPECT_EQ(message_of<IoError>([&] { in_parts(rows, full); }),
              group.rank() == 0 ? "the disk is full" : "rank 0 of 3: the disk is full");
    taken = 0;
    in_parts(rows, take);  // it goes on
    EXPECT_EQ(taken, group.rank() == 0 ? 5 : 0);
  });
}

TEST(TableOrderOnThreads, VectorsOfOtherRanksAreNotSet) {
  run_ranks(2, [](ProcessGroup& group) {
    StaticTable table("t", 0, 6, 2, kInit);
    table.place({Placement::Distributed, {1, 0}}, group.rank());
    ASSERT_TRUE(table.allocate(1, {}, {}, [] { return true; }));
    set_numbers(table, {1, 2, 4});
    const RowOrder order = order_of_keys(table, &group);
    EXPECT_EQ(values_of(order.keys), group.rank() == 0 ? (Values{1, 3, 5}) : (Values{0, 2, 4}));
    EXPECT_EQ(values_of(order.places), values_of(order.keys));
    const Values weight = values_of(table.weight().detach());
    EXPECT_EQ(weight[group.rank() == 0 ? 0 : 2], group.rank() == 0 ? 1 : 2);
    TERCEL_EXPECT_THROW(set_numbers(table, {1, 6}), IndexError, "no row for key 6");
  });
  HashedTable alone("t", 2, kInit);
  alone.place({Placement::Distributed, {0, 1}}, 0);
  ASSERT_TRUE(alone.allocate(1, {}, {}, [] { return true; }));
  TERCEL_EXPECT_THROW(order_of_keys(alone, nullptr), RuntimeError, "other ranks have a part of its rows");
}

}  // namespace
}  // namespace tercel::recsys
