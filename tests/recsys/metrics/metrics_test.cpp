#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>

#include "tercel/recsys/metrics/accuracy.h"
#include "tercel/recsys/metrics/auc.h"
#include "tercel/recsys/metrics/calibration.h"
#include "tercel/recsys/metrics/log_loss.h"
#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/parallel.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
using Floats = std::vector<float>;

template <class M>
double value_of(const Floats& logits, const Floats& labels) {
  M metric;
  metric.add(logits, labels);
  return metric.value();
}

/** Every metric, with a number where its name has one. */
std::vector<std::unique_ptr<Metric>> make_metrics() {
  std::vector<std::unique_ptr<Metric>> all;
  for (const std::string_view name : metric_names()) {
    std::string full(name);
    if (full.ends_with("@K")) full.replace(full.size() - 1, 1, "3");
    if (full.ends_with("@P")) full.replace(full.size() - 1, 1, "0.8");
    all.push_back(make_metric(full, "test"));
    EXPECT_EQ(all.back()->name(), full);
  }
  return all;
}

/** Adds rows, of which the first is number `first`, to any metric: 700 consecutive ones are a group. */
void add(Metric& metric, Span<float> logits, Span<float> labels, size_t first = 0) {
  std::vector<int64_t> groups;
  for (size_t i = 0; i < logits.size(); ++i) groups.push_back(static_cast<int64_t>((first + i) / 700));
  metric.add({logits, labels, {}, groups});
}

struct Rows {
  Floats logits, labels;
};

/** Rows with `levels` different scores (0: any number), the higher the likelier a 1. */
Rows random_rows(size_t n, int levels, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Rows rows;
  for (size_t i = 0; i < n; ++i) {
    const float score = normal(random);
    rows.logits.push_back(levels > 0 ? std::round(score * static_cast<float>(levels) / 4) : score);
    rows.labels.push_back(normal(random) < score - 1 ? 1.0f : 0.0f);
  }
  return rows;
}

/** Every pair of a positive and a negative row, one by one. */
double naive_auc(const Rows& rows) {
  double above = 0, pairs = 0;
  for (size_t i = 0; i < rows.logits.size(); ++i)
    for (size_t j = 0; j < rows.logits.size(); ++j)
      if (rows.labels[i] == 1 && rows.labels[j] == 0) {
        pairs += 1;
        above += rows.logits[i] > rows.logits[j] ? 1 : rows.logits[i] == rows.logits[j] ? 0.5 : 0;
      }
  return above / pairs;
}

TEST(Auc, CountsEveryPairAndTiesHalf) {
  EXPECT_EQ(value_of<Auc>({1, 2, 3, 4}, {0, 0, 1, 1}), 1);
  EXPECT_EQ(value_of<Auc>({1, 2, 3, 4}, {1, 1, 0, 0}), 0);
  EXPECT_EQ(value_of<Auc>({1, 3, 2, 4}, {0, 0, 1, 1}), 0.75);
  EXPECT_EQ(value_of<Auc>({5, 5, 5}, {0, 1, 1}), 0.5);
  for (const int levels : {0, 3, 10, 100})
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const Rows rows = random_rows(700, levels, seed);
      EXPECT_DOUBLE_EQ(value_of<Auc>(rows.logits, rows.labels), naive_auc(rows)) << levels << " levels, seed " << seed;
    }
}

TEST(Auc, ExtremeScores) {
  // In ascending order; both zeros are one score.
  const Floats logits = {-kInfinity, -3e38f, -1e-45f, -0.0f, 0.0f, 1e-45f, 3e38f, kInfinity};
  const Floats labels = {0, 1, 0, 1, 0, 1, 0, 1};
  EXPECT_DOUBLE_EQ(value_of<Auc>(logits, labels), naive_auc({logits, labels}));
  EXPECT_EQ(value_of<Auc>({-0.0f, 0.0f}, {1, 0}), 0.5);
}

TEST(Auc, UndefinedIsNan) {
  EXPECT_TRUE(std::isnan(value_of<Auc>({}, {})));
  EXPECT_TRUE(std::isnan(value_of<Auc>({1, 2}, {1, 1})));
  EXPECT_TRUE(std::isnan(value_of<Auc>({1, 2}, {0, 0})));
  EXPECT_TRUE(std::isnan(value_of<Auc>({1, kNan, 2}, {1, 0, 0})));
}

// More than one internal block, with ties across them. The reference counts by score.
TEST(AucThreads, ManyRows) {
  const int64_t threads = num_threads();
  for (const int levels : {50, 20'000}) {
    const Rows rows = random_rows(900'000, levels, 9);
    std::map<float, std::pair<double, double>> by_score;
    for (size_t i = 0; i < rows.logits.size(); ++i)
      (rows.labels[i] == 1 ? by_score[rows.logits[i]].first : by_score[rows.logits[i]].second) += 1;
    double above = 0, positives = 0, negatives = 0;
    for (const auto& [score, counts] : by_score) {
      above += counts.first * (negatives + counts.second / 2);
      positives += counts.first;
      negatives += counts.second;
    }
    for (const int64_t n : {1, 3}) {
      set_num_threads(n);
      EXPECT_DOUBLE_EQ(value_of<Auc>(rows.logits, rows.labels), above / (positives * negatives)) << levels;
    }
  }
  set_num_threads(threads);
}

TEST(LogLoss, IsTheMeanSurprise) {
  const Rows rows = random_rows(1000, 0, 4);
  double sum = 0;
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    const double p = 1 / (1 + std::exp(-static_cast<double>(rows.logits[i])));
    sum -= rows.labels[i] == 1 ? std::log(p) : std::log1p(-p);
  }
  EXPECT_NEAR(value_of<LogLoss>(rows.logits, rows.labels), sum / 1000, 1e-14);
  EXPECT_DOUBLE_EQ(value_of<LogLoss>({0}, {1}), std::log(2.0));
  EXPECT_NEAR(value_of<LogLoss>({std::log(3.0f)}, {0.25f}), -(0.25 * std::log(0.75) + 0.75 * std::log(0.25)), 1e-7)
      << "labels may be probabilities";
}

TEST(LogLoss, ExtremeLogits) {
  EXPECT_DOUBLE_EQ(value_of<LogLoss>({1000}, {0}), 1000);
  EXPECT_DOUBLE_EQ(value_of<LogLoss>({-1000}, {1}), 1000);
  EXPECT_EQ(value_of<LogLoss>({1000}, {1}), 0);
  EXPECT_EQ(value_of<LogLoss>({-1000}, {0}), 0);
  EXPECT_NEAR(value_of<LogLoss>({40}, {1}), std::exp(-40.0), 1e-30) << "not rounded to 0";
  EXPECT_EQ(value_of<LogLoss>({kInfinity}, {1}), 0);
  EXPECT_EQ(value_of<LogLoss>({-kInfinity}, {0}), 0);
  EXPECT_EQ(value_of<LogLoss>({kInfinity}, {0}), kInfinity);
  EXPECT_TRUE(std::isnan(value_of<LogLoss>({kNan}, {0})));
  EXPECT_TRUE(std::isnan(value_of<LogLoss>({kNan}, {1})));
  EXPECT_TRUE(std::isnan(value_of<LogLoss>({}, {})));
}

TEST(Accuracy, ThresholdIsOneHalf) {
  EXPECT_EQ(value_of<Accuracy>({-1, 0, 1e-30f, 5}, {0, 0, 1, 0}), 0.75);
  EXPECT_EQ(value_of<Accuracy>({kInfinity, -kInfinity}, {1, 0}), 1);
  EXPECT_TRUE(std::isnan(value_of<Accuracy>({1, kNan}, {1, 0})));
  EXPECT_TRUE(std::isnan(value_of<Accuracy>({}, {})));
}

TEST(Calibration, MeanProbabilityByMeanLabel) {
  EXPECT_DOUBLE_EQ(value_of<Calibration>({0, 0, 0, 0}, {1, 0, 0, 0}), 2);
  EXPECT_DOUBLE_EQ(value_of<Calibration>({-kInfinity, kInfinity}, {1, 0}), 1);
  EXPECT_TRUE(std::isnan(value_of<Calibration>({0, 0}, {0, 0}))) << "no label is 1";
  EXPECT_TRUE(std::isnan(value_of<Calibration>({0, kNan}, {0, 1})));
  EXPECT_TRUE(std::isnan(value_of<Calibration>({}, {})));
}

TEST(Metrics, NamesAreFixed) {
  std::vector<std::string> names;
  for (const auto& metric : make_metrics()) names.emplace_back(metric->name());
  EXPECT_EQ(names, (std::vector<std::string>{"auc", "gauc", "log_loss", "ne", "accuracy", "calibration", "average_loss",
                                             "hit_rate@3", "ndcg@3", "ndcg", "precision@0.8", "smape", "mae", "rmse"}));
  TERCEL_EXPECT_THROW(make_metric("acu", "owner"), ConfigError, "owner: unknown metric 'acu'; did you mean 'auc'?");
  for (const char* bad :
       {"hit_rate@", "hit_rate@x", "hit_rate@3.5", "hit_rate", "ndcg@K", "precision@nan", "auc@3", ""})
    TERCEL_EXPECT_THROW(make_metric(bad, "owner"), ConfigError, "unknown metric");
  TERCEL_EXPECT_THROW(make_metric("hit_rate@0", "owner"), ConfigError,
                      "expected at least 1 row of each group, found 0");
  TERCEL_EXPECT_THROW(make_metric("precision@1", "owner"), ConfigError, "expected a threshold above 0 and below 1");
}

TEST(Metrics, BatchesDoNotMatter) {
  const Rows rows = random_rows(10'000, 50, 2);
  for (size_t m = 0; m < make_metrics().size(); ++m) {
    const auto whole = std::move(make_metrics()[m]), pieces = std::move(make_metrics()[m]);
    if (whole->name() == "average_loss") continue;  // that of the batches
    add(*whole, rows.logits, rows.labels);
    std::mt19937_64 random(3);
    for (size_t at = 0; at < rows.logits.size();) {
      const size_t n = std::min<size_t>(random() % 700, rows.logits.size() - at);
      add(*pieces, {rows.logits.data() + at, n}, {rows.labels.data() + at, n}, at);
      at += n;
      if (random() % 4 == 0) static_cast<void>(pieces->value());  // reading does not change the state
    }
    EXPECT_EQ(pieces->value(), whole->value()) << whole->name();
    EXPECT_EQ(pieces->value(), whole->value()) << "a second time";
  }
}

TEST(Metrics, ResetForgetsEverything) {
  for (const auto& metric : make_metrics()) {
    add(*metric, Floats{1, kNan, 3}, Floats{0, 1, 0});
    EXPECT_TRUE(std::isnan(metric->value())) << metric->name();
    metric->reset();
    EXPECT_TRUE(std::isnan(metric->value())) << metric->name();
    add(*metric, Floats{-1, 2}, Floats{0, 1});
    EXPECT_FALSE(std::isnan(metric->value())) << metric->name();
  }
}

// Conformance: every metric of the list runs through the tests of states.
TEST(MetricStates, MergedPartsEqualTheWhole) {
  const Rows rows = random_rows(10'000, 50, 2);
  std::mt19937_64 random(5);
  for (size_t m = 0; m < make_metrics().size(); ++m)
    for (const size_t longest : {1, 700, 9'000}) {
      const auto whole = std::move(make_metrics()[m]), merged = std::move(make_metrics()[m]);
      if (whole->name() == "average_loss") continue;
      add(*whole, rows.logits, rows.labels);
      std::vector<std::string> states{std::move(make_metrics()[m])->state()};  // also of no rows
      for (size_t at = 0; at < rows.logits.size();) {
        const size_t n = std::min<size_t>(1 + random() % longest, rows.logits.size() - at);
        const auto part = std::move(make_metrics()[m]);
        add(*part, {rows.logits.data() + at, n}, {rows.labels.data() + at, n}, at);
        if (random() % 4 == 0) static_cast<void>(part->value());  // which may order the rows
        states.push_back(part->state());
        at += n;
      }
      std::shuffle(states.begin(), states.end(), random);
      for (const std::string& state : states) merged->merge(state);
      EXPECT_NEAR(merged->value(), whole->value(), 1e-12 * std::abs(whole->value())) << whole->name();
      add(*merged, Floats{3}, Floats{0});
      add(*whole, Floats{3}, Floats{0});
      EXPECT_NEAR(merged->value(), whole->value(), 1e-12 * std::abs(whole->value())) << "more rows may follow";
    }
}

// More rows than one of Auc's blocks has, also in a part by itself.
TEST(MetricStates, MergedPartsOfManyRowsEqualTheWhole) {
  const Rows rows = random_rows(300'000, 20'000, 6);
  for (size_t m = 0; m < make_metrics().size(); ++m) {
    const auto whole = std::move(make_metrics()[m]), merged = std::move(make_metrics()[m]);
    if (whole->name() == "average_loss") continue;
    add(*whole, rows.logits, rows.labels);
    size_t at = 0;
    for (const size_t n : {10'000, 270'000, 20'000}) {
      const auto part = std::move(make_metrics()[m]);
      add(*part, {rows.logits.data() + at, n}, {rows.labels.data() + at, n}, at);
      merged->merge(part->state());
      at += n;
    }
    EXPECT_EQ(at, rows.logits.size());
    EXPECT_NEAR(merged->value(), whole->value(), 1e-12 * std::abs(whole->value())) << whole->name();
  }
}

TEST(MetricStates, NanIsKept) {
  for (size_t m = 0; m < make_metrics().size(); ++m) {
    const auto bad = std::move(make_metrics()[m]), merged = std::move(make_metrics()[m]);
    add(*bad, Floats{1, kNan, 3}, Floats{0, 1, 0});
    add(*merged, Floats{-1, 2}, Floats{0, 1});
    ASSERT_FALSE(std::isnan(merged->value()));
    merged->merge(bad->state());
    EXPECT_TRUE(std::isnan(merged->value())) << merged->name();
  }
}

TEST(MetricStates, DamagedBytesAreRefusedAndChangeNothing) {
  const Rows rows = random_rows(50, 0, 3);
  for (size_t m = 0; m < make_metrics().size(); ++m) {
    const auto from = std::move(make_metrics()[m]), to = std::move(make_metrics()[m]);
    add(*from, rows.logits, rows.labels);
    add(*to, Floats{-1, 2, 1}, Floats{0, 0, 1});
    const double before = to->value();
    const std::string good = from->state(), place = "state of metric '" + std::string(to->name()) + "'";
    for (size_t length = 0; length < good.size(); length += length < 40 ? 1 : 37)
      TERCEL_EXPECT_THROW(to->merge(std::string_view(good).substr(0, length)), DataError, place);
    TERCEL_EXPECT_THROW(to->merge(good + "x"), DataError, "checksum");
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 16);
      TERCEL_EXPECT_THROW(to->merge(bad), DataError, place);
    }
    for (const auto& other : make_metrics())
      if (other->name() != to->name())
        TERCEL_EXPECT_THROW(to->merge(other->state()), DataError, "the state of '" + std::string(to->name()) + "'");
    EXPECT_EQ(to->value(), before) << to->name();
  }
}

/** A state whose content after the name is `content`, with a right checksum. */
std::string sealed(std::string_view name, const std::string& content) {
  std::string bytes;
  put(bytes, static_cast<uint64_t>(name.size()));
  bytes += name;
  bytes += content;
  put(bytes, checksum(bytes.data(), bytes.size()));
  return bytes;
}

template <class... T>
std::string bytes_of(T... values) {
  std::string bytes;
  (put(bytes, values), ...);
  return bytes;
}

// Values that no metric writes, with a right checksum.
TEST(MetricStates, ImpossibleValuesAreRefusedAndChangeNothing) {
  constexpr double kLess = -1, kMore = std::numeric_limits<double>::infinity();
  constexpr uint8_t kNo = 0;
  const std::map<std::string_view, std::vector<std::string>> bad = {
      {"accuracy",
       {bytes_of(3.0, 2.0, kNo), bytes_of(kLess, 2.0, kNo), bytes_of(0.0, kLess, kNo), bytes_of(0.0, kMore, kNo),
        bytes_of(1.0, 2.0, uint8_t{7})}},
      {"precision@0.8", {bytes_of(3.0, 2.0, kNo), bytes_of(0.0, kMore, kNo)}},
      {"log_loss", {bytes_of(0.5, kLess), bytes_of(0.5, kMore)}},
      {"ne", {bytes_of(0.5, 0.5, kLess)}},
      {"average_loss", {bytes_of(0.5, kLess)}},
      {"mae", {bytes_of(0.5, kMore)}},
      // A weight of 0, and one that is NaN.
      {"auc",
       {bytes_of(uint8_t{2}, uint64_t{0}), bytes_of(kNo, uint64_t{1}, uint64_t{0}),
        bytes_of(kNo, uint64_t{1}, uint64_t{0x7fc00000})}},
      // A label of NaN, and a negative one.
      {"ndcg", {bytes_of(kNo, uint64_t{1}, uint64_t{0x7fc00000}), bytes_of(kNo, uint64_t{1}, uint64_t{0xbf800000})}},
      {"gauc",
       {bytes_of(kNo, uint64_t{1}, int64_t{5}, 1.0f, 1.0f, 0.0f),
        bytes_of(kNo, uint64_t{1}, int64_t{5}, 1.0f, kNan, 1.0f),
        bytes_of(kNo, uint64_t{1}, int64_t{5}, kNan, 1.0f, 1.0f)}}};
  for (const auto& metric : make_metrics()) {
    if (!bad.contains(metric->name())) continue;
    add(*metric, Floats{-1, 2, 1}, Floats{0, 0, 1});
    const std::string before = metric->state();
    for (const std::string& content : bad.at(metric->name())) {
      TERCEL_EXPECT_THROW(metric->merge(sealed(metric->name(), content)), DataError, "state of metric");
      EXPECT_EQ(metric->state(), before) << metric->name();
    }
  }
}

TEST(Metrics, UnequalLengthsAreRefused) {
  for (const auto& metric : make_metrics())
    TERCEL_EXPECT_THROW(metric->add(Floats{1, 2}, Floats{1}), ValueError,
                        std::string(metric->name()) + ": 2 logits for 1 labels");
}

TEST(Metrics, WeightsAndGroupsAreChecked) {
  const Floats logits = {1, 2}, labels = {0, 1};
  for (const auto& metric : make_metrics()) {
    const std::string name(metric->name());
    const std::vector<int64_t> groups = {4, 4};
    TERCEL_EXPECT_THROW(metric->add({logits, labels, Floats{1}, groups}), ValueError,
                        name + ": 2 logits for 1 weights");
    for (const float bad : {-1.0f, kNan, kInfinity})
      TERCEL_EXPECT_THROW(metric->add({logits, labels, Floats{1, bad}, groups}), ValueError,
                          name + ": expected finite weights that are not negative");
    if (metric->needs_groups())
      TERCEL_EXPECT_THROW(metric->add(logits, labels), ValueError, name + ": 2 logits for 0 groups");
    else
      metric->add(logits, labels);
  }
}

}  // namespace
}  // namespace tercel::recsys
