#include "tercel/recsys/metrics/ranking.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tercel/util/error.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

using Values = std::vector<float>;

std::pair<double, double> measure(int64_t group, int64_t top, const Values& logits, const Values& labels) {
  RankingMetrics metrics(group, top);
  metrics.add(logits, labels);
  const auto values = metrics.values();
  return {values[0].second, values[1].second};
}

TEST(Ranking, CountsRelevantRowsAmongTheBest) {
  // Places 1, 3 and 4 of groups of 4.
  const Values logits = {9, 1, 2, 3, 1, 2, 3, 0, -5, -1, -2, -3}, labels = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
  const auto [hits, ndcg] = measure(4, 3, logits, labels);
  EXPECT_DOUBLE_EQ(hits, 2.0 / 3);
  EXPECT_DOUBLE_EQ(ndcg, (1 + 1 / std::log2(4.0)) / 3);
  RankingMetrics named(4, 3);
  named.add(logits, labels);
  EXPECT_EQ(named.values()[0].first, "hit_rate@3");
  EXPECT_EQ(named.values()[1].first, "ndcg@3");
}

TEST(Ranking, SeveralRelevantRowsAreComparedWithTheBestOrder) {
  const auto [hits, ndcg] = measure(4, 2, {4, 3, 2, 1}, {0, 1, 1, 0});
  EXPECT_EQ(hits, 1);
  EXPECT_DOUBLE_EQ(ndcg, (1 / std::log2(3.0)) / (1 + 1 / std::log2(3.0)));
}

TEST(Ranking, EqualLogitsAreNoSuccess) {
  EXPECT_EQ(measure(3, 1, {0, 0, 0}, {1, 0, 0}), (std::pair{0.0, 0.0})) << "a model that knows nothing";
  EXPECT_EQ(measure(3, 3, {0, 0, 0}, {1, 0, 0}).second, 0.5) << "the last place";
}

TEST(Ranking, GroupsMayBeCutByBatches) {
  RankingMetrics whole(3, 1), parts(3, 1);
  const Values logits = {1, 5, 2, 3, 1, 2}, labels = {0, 1, 0, 0, 0, 1};
  whole.add(logits, labels);
  for (size_t i = 0; i < logits.size(); ++i) parts.add({&logits[i], 1}, {&labels[i], 1});
  EXPECT_EQ(parts.values(), whole.values());
  EXPECT_EQ(whole.values()[0].second, 0.5);
}

TEST(Ranking, GroupsWithoutRelevantRowsDoNotCount) {
  EXPECT_EQ(measure(2, 1, {1, 2, 2, 1}, {0, 0, 1, 0}).first, 1);
  EXPECT_TRUE(std::isnan(measure(2, 1, {1, 2}, {0, 0}).first));
  EXPECT_TRUE(std::isnan(measure(2, 1, {1, std::numeric_limits<float>::quiet_NaN(), 2, 1}, {1, 0, 1, 0}).second));
}

TEST(Ranking, WrongSizesAreNamed) {
  TERCEL_EXPECT_THROW(RankingMetrics(0, 1), ConfigError, "ranking: expected groups of at least 1 row, found 0");
  TERCEL_EXPECT_THROW(RankingMetrics(3, 4), ConfigError, "ranking: expected 1 to 3 best rows of each group, found 4");
  RankingMetrics metrics(3, 1);
  TERCEL_EXPECT_THROW(metrics.add(Values{1}, Values{}), ValueError, "as many labels as logits");
  metrics.add(Values{1, 2}, Values{0, 1});
  TERCEL_EXPECT_THROW(metrics.values(), DataError, "ranking: expected groups of 3 rows, found a last one of 2");
}

}  // namespace
}  // namespace tercel::recsys
