// Estimates of steps, and the placements that they choose.
#include "tercel/recsys/placement_plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

TableLoad table_of(int64_t rows, int64_t dim, int64_t slots, int64_t numbers_per_value = 1) {
  TableLoad table;
  table.name = "t";
  table.rows = rows;
  table.dim = dim;
  table.numbers_per_row = dim * numbers_per_value;
  for (int64_t s = 0; s < slots; ++s) table.slots.push_back({rows / slots, 1});
  return table;
}

TEST(PlacementPlan, CountsUniqueKeys) {
  EXPECT_NEAR(unique_keys({1'000'000'000, 1}, 100), 100, 1e-3);
  EXPECT_NEAR(unique_keys({10, 1}, 1000), 10, 1e-9);
  EXPECT_NEAR(unique_keys({2, 1}, 1), 2 * (1 - std::exp(-0.5)), 1e-9);
  EXPECT_EQ(unique_keys({0, 3}, 5), 15);
  EXPECT_EQ(unique_keys({10, 1}, 0), 0);
  const SlotLoad sampled{100, 1, {1, 2, 3, 6}};
  EXPECT_NEAR(unique_keys(sampled, 4), 3, 1e-9);
  EXPECT_NEAR(unique_keys(sampled, 8), 6, 1e-9);
  EXPECT_NEAR(unique_keys(sampled, 16), 12, 1e-9) << "as between the last two";
  EXPECT_EQ(unique_keys(sampled, 1 << 20), 100) << "there are no more";
  EXPECT_NEAR(unique_keys(sampled, std::sqrt(32.0)), std::sqrt(18.0), 1e-9);
}

TEST(PlacementPlan, BytesAreThoseOfTheExchanges) {
  const TableLoad table = table_of(1'000'000'000, 16, 2);
  const std::vector<int64_t> all = {0, 1, 2, 3};
  // 50 rows of a rank with 2 keys each, to 3 others, of 8 bytes and 16 numbers.
  EXPECT_NEAR(placement_cost(table, {}, 4, 200, {}).bytes_sent, 3 * 100 * (8 + 64), 1);
  // Keys of three quarters; their gradients; vectors of a quarter of the keys of 3 others.
  EXPECT_NEAR(placement_cost(table, {Placement::Distributed, all}, 4, 200, {}).bytes_sent, 75 * (8 + 64) + 3 * 25 * 64,
              1);
  EXPECT_EQ(placement_cost(table, {Placement::Distributed, all}, 4, 200, {}).memory_bytes, 16'000'000'000);
  EXPECT_EQ(placement_cost(table, {}, 4, 200, {}).memory_bytes, 64'000'000'000);
}

TEST(PlacementPlan, CountsRanksOfARow) {
  EXPECT_NEAR(ranks_of_row({100, 1}, 4), 1, 1e-12);
  EXPECT_NEAR(ranks_of_row({100, 0.25}, 4), 0.25, 1e-12);
  EXPECT_NEAR(ranks_of_row({100, 2}, 4), 1.75, 1e-12);
  EXPECT_NEAR(ranks_of_row({100, 1, {}, {0.5, 0, 0.5}}, 4), 0.875, 1e-12) << "two keys or none";
}

TEST(PlacementPlan, SumsTravelWhereTheyAreFewerBytes) {
  TableLoad table = table_of(1'000'000'000, 16, 1);
  table.slots[0].keys = 100;
  const std::vector<int64_t> all = {0, 1, 2, 3};
  const TablePlacement distributed{Placement::Distributed, all};
  // 50 rows of a rank have 100 keys each, on all 4 ranks: 3 sums and 75 keys of a row go elsewhere, and as many come.
  EXPECT_NEAR(placement_cost(table, distributed, 4, 200, {}).bytes_sent, 50 * (75 * 8 + 3 * 8 + 3 * 2 * 64), 1);
  table.counts_keys = true;
  EXPECT_NEAR(placement_cost(table, distributed, 4, 200, {}).bytes_sent, 50 * 75 * (8 + 2 * 64), 1);
}

TEST(PlacementPlan, LargeTablesAreDistributedAndSmallOnesReplicated) {
  const std::vector<TableLoad> tables = {table_of(50'000'000, 64, 26), table_of(100, 4, 1)};
  const std::vector<TablePlacement> plan = plan_placements(tables, PlacementChoice::Auto, 8, 65536);
  EXPECT_EQ(plan[0].placement, Placement::Distributed);
  EXPECT_EQ(plan[0].ranks, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(plan[1].placement, Placement::Replicated);
  TableLoad growing = tables[0];
  growing.is_static = false;
  EXPECT_EQ(plan_placements(Span<TableLoad>(&growing, 1), PlacementChoice::Auto, 8, 65536)[0].placement,
            Placement::Distributed);
  growing.is_limited = true;
  EXPECT_EQ(plan_placements(Span<TableLoad>(&growing, 1), PlacementChoice::Auto, 8, 65536)[0].placement,
            Placement::Replicated)
      << "one rank may have no place while others have";
  EXPECT_EQ(plan_placements(Span<TableLoad>(&growing, 1), PlacementChoice::Distributed, 8, 65536)[0].placement,
            Placement::Distributed);
  TERCEL_EXPECT_THROW(plan_placements(Span<TableLoad>(&growing, 1), PlacementChoice::Localized, 8, 65536), ConfigError,
                      "cannot be localized");
}

TEST(PlacementPlan, TakesPlacementsThatAreGiven) {
  std::vector<TableLoad> tables = {table_of(50'000'000, 64, 26), table_of(100, 4, 2)};
  tables[0].given = TablePlacement{};
  tables[1].given = TablePlacement{Placement::Distributed, {3, 1}};
  std::vector<TablePlacement> plan = plan_placements(tables, PlacementChoice::Auto, 8, 65536);
  EXPECT_EQ(plan[0].placement, Placement::Replicated);
  EXPECT_EQ(plan[1].placement, Placement::Distributed);
  EXPECT_EQ(plan[1].ranks, (std::vector<int64_t>{3, 1}));
  tables[1].given->ranks.clear();
  plan = plan_placements(tables, PlacementChoice::Replicated, 2, 65536);
  EXPECT_EQ(plan[1].ranks, (std::vector<int64_t>{0, 1})) << "all of them";
  tables[1].given->ranks = {2};
  EXPECT_EQ(plan_placements(tables, PlacementChoice::Replicated, 2, 65536)[1].placement, Placement::Replicated)
      << "a simulation of fewer ranks";
}

// HugeCTR's DLRM of MLPerf v2.0: 26 tables of dimension 128 and about 2.4 million dense weights. It sends numbers of 16
// bits: two of them count as one here. 8 A100 trained 37.1 million samples a second at batch 55,296, 112 of them 119
// million at 71,680, with 25 GB/s of each between machines.
TEST(PlacementPlan, ScalesAsPublishedSystemsDo) {
  const std::vector<TableLoad> tables = {table_of(187'000'000, 64, 26)};
  const StepLoad step{2.4e6 * 2, 0, 8 / 37.1e6 * 0.5};  // half of the time of a step of 8 is computation
  const MachineRates rates{200e9, 3e-6, 3e-7, 1.5e12};
  const StepEstimate eight = estimate_step(step, tables, PlacementChoice::Auto, 8, 55296, rates);
  const StepEstimate many =
      estimate_step(step, tables, PlacementChoice::Auto, 112, 71680, {25e9, 3e-6, 3e-7, 1.5e12});  // between machines
  EXPECT_EQ(eight.placements[0].placement, Placement::Distributed);
  EXPECT_NEAR(std::log2(eight.samples_per_second() / 37.1e6), 0, 1);
  EXPECT_NEAR(std::log2(many.samples_per_second() / 119e6), 0, 1);
  EXPECT_LT(many.samples_per_second() / eight.samples_per_second(), 14.0);
}

}  // namespace
}  // namespace tercel::recsys
