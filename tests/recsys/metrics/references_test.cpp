// Metrics of rows with weights and groups, against their definitions, row by row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tercel/recsys/metrics/metric.h"
#include "tercel/recsys/metrics/reliability.h"
#include "tercel/recsys/metrics/slices.h"

namespace tercel::recsys {
namespace {

struct Row {
  double score = 0, label = 0, weight = 1;
  int64_t group = 0;
  double p() const { return 1 / (1 + std::exp(-score)); }
};
using Rows = std::vector<Row>;

/** Rows with ties; of some groups all labels are equal, some weights are 0. */
Rows random_rows(size_t n, uint64_t seed, bool weighted) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Rows rows;
  for (size_t i = 0; i < n; ++i) {
    Row row;
    row.score = std::round(normal(random) * 4) / 4 + 0.5;
    row.group = static_cast<int64_t>(random() % 23) - 5;
    row.label = row.group != 3 && normal(random) < row.score - 0.7 ? 1 : 0;
    if (weighted) row.weight = static_cast<double>(random() % 5) / 2;
    rows.push_back(row);
  }
  return rows;
}

struct Spans {
  std::vector<float> logits, labels, weights;
  std::vector<int64_t> groups;
  MetricRows rows() const { return {logits, labels, weights, groups}; }
};

Spans spans_of(const Rows& rows) {
  Spans spans;
  for (const Row& row : rows) {
    spans.logits.push_back(static_cast<float>(row.score));
    spans.labels.push_back(static_cast<float>(row.label));
    spans.weights.push_back(static_cast<float>(row.weight));
    spans.groups.push_back(row.group);
  }
  return spans;
}

double value_of(const std::string& name, const Rows& rows) {
  const auto metric = make_metric(name, "test");
  const Spans spans = spans_of(rows);
  metric->add(spans.rows());
  return metric->value();
}

double auc_of(const Rows& rows) {
  double above = 0, pairs = 0;
  for (const Row& a : rows)
    for (const Row& b : rows)
      if (a.label == 1 && b.label == 0) {
        pairs += a.weight * b.weight;
        above += a.weight * b.weight * (a.score > b.score ? 1 : a.score == b.score ? 0.5 : 0);
      }
  return above / pairs;
}

std::map<int64_t, Rows> groups_of(const Rows& rows) {
  std::map<int64_t, Rows> groups;
  for (const Row& row : rows)
    if (row.weight > 0) groups[row.group].push_back(row);
  return groups;
}

/** Weighted mean of a function of rows. */
template <class F>
double mean_of(const Rows& rows, F&& value) {
  double sum = 0, weights = 0;
  for (const Row& row : rows) {
    sum += row.weight * value(row);
    weights += row.weight;
  }
  return sum / weights;
}

class References : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Weights, References, testing::Bool());

TEST_P(References, MeansOfRows) {
  const Rows rows = random_rows(500, 1, GetParam());
  const auto cross_entropy = [](const Row& row) { return -std::log(row.label == 1 ? row.p() : 1 - row.p()); };
  const double loss = mean_of(rows, cross_entropy), rate = mean_of(rows, [](const Row&row) { return row.label; });
  EXPECT_NEAR(value_of("log_loss", rows), loss, 1e-12);
  EXPECT_NEAR(value_of("average_loss", rows), loss, 1e-12);
  EXPECT_NEAR(value_of("ne", rows), loss / -(rate * std::log(rate) + (1 - rate) * std::log(1 - rate)), 1e-12);
  EXPECT_NEAR(value_of("accuracy", rows),
              mean_of(rows, [](const Row& row) { return (row.p() > 0.5) == (row.label == 1) ? 1 : 0; }), 1e-12);
  EXPECT_NEAR(value_of("calibration", rows), mean_of(rows, [](const Row& row) { return row.p(); }) / rate, 1e-12);
  EXPECT_NEAR(value_of("mae", rows), mean_of(rows, [](const Row& row) { return std::abs(row.p() - row.label); }),
              1e-12);
  EXPECT_NEAR(value_of("rmse", rows),
              std::sqrt(mean_of(rows, [](const Row& row) { return std::pow(row.p() - row.label, 2); })), 1e-12);
  EXPECT_NEAR(value_of("smape", rows),
              mean_of(rows, [](const Row& row) { return 2 * std::abs(row.p() - row.label) / (row.p() + row.label); }),
              1e-12);
  double right = 0, above = 0;
  for (const Row& row : rows)
    if (row.p() > 0.8) {
      above += row.weight;
      right += row.weight * row.label;
    }
  ASSERT_GT(above, 0);
  EXPECT_NEAR(value_of("precision@0.8", rows), right / above, 1e-12);
  EXPECT_NEAR(value_of("auc", rows), auc_of(rows), 1e-12);
}

TEST_P(References, Groups) {
  const Rows rows = random_rows(400, 2, GetParam());
  double sum = 0, weights = 0;
  std::map<int, double> hits, gains;
  double relevant_groups = 0;
  for (const auto& [group, members] : groups_of(rows)) {
    double weight = 0, positives = 0;
    for (const Row& row : members) {
      weight += row.weight;
      positives += row.label;
    }
    const auto size = static_cast<double>(members.size());
    if (positives > 0 && positives < size) {
      sum += weight * auc_of(members);
      weights += weight;
    }
    if (positives == 0) continue;
    ++relevant_groups;
    // The worst order of ties: rows without a click first.
    Rows sorted = members;
    std::sort(sorted.begin(), sorted.end(),
              [](const Row& a, const Row& b) { return a.score != b.score ? a.score > b.score : a.label < b.label; });
    for (const int top : {1, 5, 1000}) {
      double gain = 0, ideal = 0;
      for (int place = 0; place < std::min<int>(top, static_cast<int>(sorted.size())); ++place) {
        gain += sorted[static_cast<size_t>(place)].label / std::log2(place + 2);
        if (place < positives) ideal += 1 / std::log2(place + 2);
      }
      hits[top] += gain > 0 ? 1 : 0;
      gains[top] += gain / ideal;
    }
  }
  ASSERT_GT(weights, 0);
  EXPECT_NEAR(value_of("gauc", rows), sum / weights, 1e-12);
  for (const int top : {1, 5, 1000}) {
    EXPECT_NEAR(value_of("hit_rate@" + std::to_string(top), rows), hits[top] / relevant_groups, 1e-12);
    EXPECT_NEAR(value_of("ndcg@" + std::to_string(top), rows), gains[top] / relevant_groups, 1e-12);
  }
}

// The mean over all orders of rows with equal scores, by shuffling them.
TEST(RankingReferences, NdcgOfOneListIsTheMeanOverOrdersOfTies) {
  Rows rows = random_rows(40, 3, false);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].label *= 1 + static_cast<double>(i % 3);  // graded
  std::mt19937_64 random(5);
  std::vector<double> labels;
  for (const Row& row : rows) labels.push_back(row.label);
  std::sort(labels.begin(), labels.end(), std::greater<>());
  double ideal = 0, mean = 0;
  for (size_t i = 0; i < labels.size(); ++i) ideal += labels[i] / std::log2(static_cast<double>(i) + 2);
  constexpr int kShuffles = 20'000;
  for (int n = 0; n < kShuffles; ++n) {
    std::shuffle(rows.begin(), rows.end(), random);
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.score > b.score; });
    for (size_t i = 0; i < rows.size(); ++i)
      mean += rows[i].label / std::log2(static_cast<double>(i) + 2) / ideal / kShuffles;
  }
  EXPECT_NEAR(value_of("ndcg", rows), mean, 2e-3);
  // Without ties it is exact.
  for (size_t i = 0; i < rows.size(); ++i) rows[i].score = static_cast<double>(i * 37 % 40);
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.score > b.score; });
  double gain = 0;
  for (size_t i = 0; i < rows.size(); ++i) gain += rows[i].label / std::log2(static_cast<double>(i) + 2);
  EXPECT_NEAR(value_of("ndcg", rows), gain / ideal, 1e-12);
}

TEST(RankingReferences, AverageLossCountsBatchesNotRows) {
  const auto metric = make_metric("average_loss", "test");
  metric->add(std::vector<float>{0, 0, 0, 0}, std::vector<float>{0, 1, 0, 1});
  metric->add(std::vector<float>{2}, std::vector<float>{0});
  EXPECT_NEAR(metric->value(), (std::log(2) + std::log1p(std::exp(2))) / 2, 1e-12);
}

TEST(Reliability, BinsHoldAllRowsInOrder) {
  const Rows rows = random_rows(5'000, 4, true);
  const Spans spans = spans_of(rows);
  Reliability whole, parts;
  whole.add(spans.rows());
  for (size_t i = 0; i < rows.size(); ++i)
    parts.add({{&spans.logits[i], 1}, {&spans.labels[i], 1}, {&spans.weights[i], 1}});
  EXPECT_EQ(whole.bins(10), parts.bins(10));
  double count = 0, prediction = 0, label = 0, weights = 0, p = 0, y = 0;
  for (const Row& row : rows) {
    weights += row.weight;
    p += row.weight * row.p();
    y += row.weight * row.label;
  }
  double before = 0;
  const std::vector<ReliabilityBin> bins = whole.bins(10);
  EXPECT_LE(bins.size(), 10u);
  EXPECT_GE(bins.size(), 8u) << "of some 25 different scores";
  for (const ReliabilityBin& bin : bins) {
    EXPECT_GT(bin.prediction, before);
    before = bin.prediction;
    count += bin.rows;
    prediction += bin.rows * bin.prediction;
    label += bin.rows * bin.label;
  }
  EXPECT_NEAR(count, weights, 1e-9);
  EXPECT_NEAR(prediction, p, 1e-9);
  EXPECT_NEAR(label, y, 1e-9);
  EXPECT_TRUE(Reliability().bins(10).empty());
  Reliability extreme;
  const std::vector<float> logits = {-1e30f, 1e30f, std::nanf("")}, labels = {0, 1, 1};
  extreme.add({logits, labels});
  EXPECT_EQ(extreme.bins(20), (std::vector<ReliabilityBin>{{1, 0, 0}, {1, 1, 1}}));
}

TEST(Slices, AreTheMostFrequentKeysEachByItself) {
  const Rows rows = random_rows(600, 6, true);
  const Spans spans = spans_of(rows);
  const auto slice_of = [](int64_t group) { return group / 3; };  // a slice has rows of several groups
  std::vector<int64_t> keys;
  for (const int64_t group : spans.groups) keys.push_back(slice_of(group));
  const std::vector<std::string> names = {"auc",      "gauc",        "hit_rate@2", "ndcg@3",
                                          "log_loss", "calibration", "ne",         "smape"};
  SliceMetrics metrics(names);
  metrics.add(spans.rows(), keys);
  const std::vector<Slice> slices = metrics.most_frequent(5);
  ASSERT_EQ(slices.size(), 5u);
  std::map<int64_t, Rows> expected_slices;
  for (const auto& [group, members] : groups_of(rows))
    expected_slices[slice_of(group)].insert(expected_slices[slice_of(group)].end(), members.begin(), members.end());
  size_t more = 0;
  for (const auto& [key, members] : expected_slices)
    more += members.size() > static_cast<size_t>(slices.back().rows) ? 1 : 0;
  EXPECT_LE(more, 4u);
  for (const Slice& slice : slices) {
    const Rows& members = expected_slices.at(slice.key);
    EXPECT_EQ(slice.rows, static_cast<int64_t>(members.size()));
    EXPECT_NEAR(slice.label, mean_of(members, [](const Row& row) { return row.label; }), 1e-12);
    ASSERT_EQ(slice.values.size(), names.size());
    for (const auto& [name, value] : slice.values) {
      const double expected = value_of(name, members);
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(value) : std::abs(value - expected) < 1e-12) << name;
    }
  }
  for (size_t i = 1; i < slices.size(); ++i) EXPECT_GE(slices[i - 1].rows, slices[i].rows);
  EXPECT_EQ(metrics.most_frequent(1000).size(), expected_slices.size());
}

}  // namespace
}  // namespace tercel::recsys
