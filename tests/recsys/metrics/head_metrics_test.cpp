#include "tercel/recsys/metrics/head_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using test::make;

Head head_of(const std::string& name, int64_t first_label, double weight) {
  Head head;
  head.name = name;
  head.first_label = first_label;
  head.weight = weight;
  return head;
}

// Label 0 is ranked perfectly by its logits, label 1 has an AUC of 0.5.
const Tensor kLabels = make({4, 2}, kFloat32, {0, 1, 0, 0, 1, 0, 1, 1});
const std::vector<Tensor> kLogits = {make({4, 1}, kFloat32, {-2, -1, 1, 2}), make({4, 1}, kFloat32, {1, 1, 1, 1})};

std::map<std::string, double> values_of(std::vector<Head> heads, const std::vector<Tensor>& logits = kLogits) {
  HeadMetrics metrics(std::move(heads));
  metrics.add(logits, kLabels);
  const auto values = metrics.values();
  EXPECT_EQ(values[0].first, "auc") << "what ranks checkpoints";
  return {values.begin(), values.end()};
}

TEST(HeadMetrics, OneHeadHasPlainNames) {
  const auto values = values_of({head_of("loss", 1, 1)}, {kLogits[1]});
  EXPECT_EQ(values.size(), 4u);
  EXPECT_EQ(values.at("auc"), 0.5);
}

TEST(HeadMetrics, SeveralHeadsHaveTheirNamesAndAMean) {
  const auto values = values_of({head_of("a", 0, 3), head_of("b", 1, 1)});
  EXPECT_EQ(values.size(), 9u);
  EXPECT_EQ(values.at("auc/a"), 1);
  EXPECT_EQ(values.at("auc/b"), 0.5);
  EXPECT_EQ(values.at("auc"), 0.875);
  EXPECT_EQ(values.at("accuracy/a"), 1);
  EXPECT_EQ(values.at("accuracy/b"), 0.5);
}

// An AUC is undefined if all labels are equal, as those of rare events may be.
TEST(HeadMetrics, TheMeanIgnoresHeadsWithOneClass) {
  HeadMetrics metrics({head_of("a", 0, 1), head_of("b", 1, 3)});
  metrics.add(kLogits, make({4, 2}, kFloat32, {0, 0, 1, 0, 0, 0, 1, 0}));
  std::map<std::string, double> values;
  for (const auto& [name, value] : metrics.values()) values[name] = value;
  EXPECT_TRUE(std::isnan(values.at("auc/b")));
  EXPECT_FALSE(std::isnan(values.at("auc/a")));
  EXPECT_EQ(values.at("auc"), values.at("auc/a"));
}

TEST(HeadMetrics, TheMeanIgnoresHeadsWithoutWeightUnlessNoneHasOne) {
  EXPECT_EQ(values_of({head_of("a", 0, 0), head_of("b", 1, 2)}).at("auc"), 0.5);
  EXPECT_EQ(values_of({head_of("a", 0, 0), head_of("b", 1, 0)}).at("auc"), 0.75);
  const Tensor nan = make({4, 1}, kFloat32, {1, 1, std::nan(""), 1});
  EXPECT_TRUE(std::isnan(values_of({head_of("a", 0, 1), head_of("b", 1, 1)}, {kLogits[0], nan}).at("auc")));
}

TEST(HeadMetrics, WhatIsMeasuredIsAnOption) {
  MetricOptions options;
  options.metrics = {"ne", "gauc", "average_loss"};
  options.group_by = "user";
  HeadMetrics metrics({head_of("loss", 1, 1)}, options);
  metrics.add({kLogits[0]}, kLabels, {{}, std::vector<int64_t>{7, 7, 7, 8}, {}});
  const auto values = metrics.values();
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[1].first, "gauc");
  EXPECT_EQ(values[1].second, 0) << "of the first three rows; the last is a group of one class";
  options.metrics = {"log_loss", "auc"};
  const auto two = HeadMetrics({head_of("a", 0, 1), head_of("b", 1, 1)}, options).values();
  ASSERT_EQ(two.size(), 5u);
  EXPECT_EQ(two[0].first, "auc");
  EXPECT_EQ(two[1].first, "log_loss/a");
  EXPECT_EQ(two[4].first, "auc/b");
}

TEST(HeadMetrics, SeveralLabelsAreAveraged) {
  Head head = head_of("loss", 0, 1);
  head.label_columns = head.columns = 2;
  head.kind = LossKind::Columns;
  MetricOptions options;
  options.metrics = {"auc", "log_loss", "mae"};
  HeadMetrics metrics({head}, options);
  EXPECT_EQ(metrics.values().size(), 9u) << "with those of the labels, also before the first rows";
  // The second label of the last row is missing.
  const Tensor logits = make({4, 2}, kFloat32, {-2, 1, -1, 1, 1, 1, 2, 50});
  metrics.add({logits}, make({4, 2}, kFloat32, {0, 1, 0, 0, 1, 0, 1, -1}));
  const auto values = metrics.values();
  EXPECT_EQ(values[0].second, 0.75) << "the mean of 1 and 0.5";
  const auto loss = [](double x, double y) { return std::log1p(std::exp(y == 1 ? -x : x)); };
  const double first = (loss(-2, 0) + loss(-1, 0) + loss(1, 1) + loss(2, 1)) / 4,
               second = (loss(1, 1) + 2 * loss(1, 0)) / 3;
  EXPECT_NEAR(values[1].second, (first + second) / 2, 1e-7);
  ASSERT_EQ(values.size(), 9u);
  EXPECT_EQ(values[3], (std::pair<std::string, double>("auc/loss/0", 1)));
  EXPECT_EQ(values[6], (std::pair<std::string, double>("auc/loss/1", 0.5)));
  EXPECT_NEAR(values[7].second, second, 1e-7);
}

TEST(HeadMetrics, ClassesAreThoseOfTheSoftmax) {
  Head head = head_of("loss", 0, 1);
  head.kind = LossKind::Classes;
  MetricOptions options;
  options.metrics = {"auc", "log_loss", "accuracy", "calibration", "average_loss"};
  constexpr size_t kRows = 60, kClasses = 3;
  std::vector<double> logits, classes, hot;
  for (size_t r = 0; r < kRows; ++r) {
    const size_t own = r * r % 7 % kClasses;
    classes.push_back(static_cast<double>(own));
    for (size_t c = 0; c < kClasses; ++c) {
      logits.push_back(static_cast<double>((r * 31 + c * 17) % 23) / 4 - 3 + (c == own ? 1 : 0));
      hot.push_back(c == own ? 1 : 0);
    }
  }
  // The reference: probabilities of each row, one by one.
  double loss = 0, right = 0, aucs = 0, calibrations = 0;
  std::vector<std::vector<double>> p(kRows, std::vector<double>(kClasses));
  for (size_t r = 0; r < kRows; ++r) {
    const double* const x = &logits[r * kClasses];
    double sum = 0;
    for (size_t c = 0; c < kClasses; ++c) sum += p[r][c] = std::exp(x[c]);
    for (double& value : p[r]) value /= sum;
    const auto own = static_cast<size_t>(classes[r]);
    loss -= std::log(p[r][own]) / kRows;
    bool best = true;
    for (size_t c = 0; c < kClasses; ++c) best = best && (c == own || x[c] < x[own]);
    right += best ? 1.0 / kRows : 0;
  }
  for (size_t c = 0; c < kClasses; ++c) {
    double above = 0, pairs = 0, mean = 0, count = 0;
    for (size_t i = 0; i < kRows; ++i) {
      mean += p[i][c];
      count += static_cast<size_t>(classes[i]) == c ? 1 : 0;
      for (size_t j = 0; j < kRows; ++j)
        if (static_cast<size_t>(classes[i]) == c && static_cast<size_t>(classes[j]) != c) {
          pairs += 1;
          above += p[i][c] > p[j][c] * (1 + 1e-6) ? 1 : p[i][c] > p[j][c] * (1 - 1e-6) ? 0.5 : 0;
        }
    }
    aucs += above / pairs / kClasses;
    calibrations += mean / count / kClasses;
  }
  for (const bool one_hot : {false, true}) {
    head.label_columns = one_hot ? kClasses : 1;
    HeadMetrics metrics({head}, options);
    const Tensor x = make({kRows, kClasses}, kFloat32, logits);
    metrics.add({x}, one_hot ? make({kRows, kClasses}, kFloat32, hot) : make({kRows, 1}, kFloat32, classes));
    const auto values = metrics.values();
    ASSERT_EQ(values.size(), 5u);
    EXPECT_NEAR(values[0].second, aucs, 2e-3) << "ties of rounded odds";
    EXPECT_NEAR(values[1].second, loss, 1e-6);
    EXPECT_NEAR(values[2].second, right, 1e-12);
    EXPECT_NEAR(values[3].second, calibrations, 1e-6);
    EXPECT_NEAR(values[4].second, loss, 1e-6) << "of one batch";
  }
  head.label_columns = 1;
  HeadMetrics metrics({head}, options);
  TERCEL_EXPECT_THROW(metrics.add({make({1, 3}, kFloat32, {0, 0, 0})}, make({1, 1}, kFloat32, {3})), DataError,
                      "metrics: head 'loss': expected a class below 3 as the label, found 3");
}

TEST(HeadMetrics, TwoClassesAreOneColumn) {
  Head head = head_of("loss", 0, 1);
  head.kind = LossKind::Classes;
  HeadMetrics classes({head}), plain({head_of("loss", 0, 1)});
  const Tensor labels = make({4, 1}, kFloat32, {0, 1, 1, 0});
  classes.add({make({4, 2}, kFloat32, {1, 0, 3, 5, 2, 2, 0, 3})}, labels);
  plain.add({make({4, 1}, kFloat32, {-1, 2, 0, 3})}, labels);
  EXPECT_EQ(classes.values(), plain.values());
}

TEST(HeadMetrics, OneClassOneRowAndWeightsOfZeroAreUndefinedNotErrors) {
  MetricOptions options;
  options.metrics = {"auc",           "gauc",         "log_loss",   "ne",     "accuracy",
                     "calibration",   "average_loss", "hit_rate@2", "ndcg@2", "ndcg",
                     "precision@0.8", "smape",        "mae",        "rmse"};
  options.group_by = options.slice_by = "user";
  const std::vector<int64_t> groups = {1, 1, 1, 1};
  const auto values_with = [&](std::vector<double> labels, const std::vector<float>& weights) {
    const auto rows = static_cast<int64_t>(labels.size());
    HeadMetrics metrics({head_of("loss", 0, 1)}, options);
    const Span<int64_t> keys(groups.data(), labels.size());
    metrics.add({kLogits[0].narrow(0, 0, rows)}, make({rows, 1}, kFloat32, labels), {weights, keys, keys});
    for (const HeadDetails& details : metrics.details())
      EXPECT_EQ(details.slices.size(), details.bins.empty() ? 0u : 1u);
    const auto values = metrics.values();
    return std::map<std::string, double>(values.begin(), values.end());
  };
  auto found = values_with({0, 0, 0, 0}, {});
  for (const char* name : {"auc", "gauc", "ne", "calibration", "hit_rate@2", "ndcg@2", "ndcg"})
    EXPECT_TRUE(std::isnan(found.at(name))) << name;
  EXPECT_FALSE(std::isnan(found.at("log_loss")));
  found = values_with({1}, {});
  EXPECT_TRUE(std::isnan(found.at("auc")));
  EXPECT_TRUE(std::isnan(found.at("precision@0.8"))) << "no row is above 0.8";
  EXPECT_EQ(found.at("hit_rate@2"), 1);
  EXPECT_EQ(found.at("accuracy"), 0);
  for (const auto& [name, value] : values_with({0, 1, 1, 0}, {0, 0, 0, 0})) EXPECT_TRUE(std::isnan(value)) << name;
  for (const auto& [name, value] : values_with({}, {})) EXPECT_TRUE(std::isnan(value)) << name;
}

TEST(MetricOptions, MistakesAreNamed) {
  const auto expect = [](const std::vector<std::string>& metrics, const std::vector<MetricTarget>& targets,
                         const std::string& group_by, const std::string& says) {
    MetricOptions options;
    options.metrics = metrics;
    options.targets = targets;
    options.group_by = group_by;
    TERCEL_EXPECT_THROW(check_metric_options(options, "solver"), ConfigError, says);
  };
  expect({}, {}, "", "solver: metrics: expected at least one name, found none");
  expect({"auc", "auc"}, {}, "", "solver: metric 'auc' occurs twice");
  expect({"gauc"}, {}, "", "solver: metric 'gauc' needs group_by");
  expect({"auc"}, {{"rmse", 0.1}}, "", "solver: targets: 'rmse' is not among the metrics that are measured");
  expect({"auc", "calibration"}, {{"calibration", 1}}, "", "'calibration' has no direction");
  expect({"auc"}, {{"uac", 1}}, "", "solver: targets: unknown metric 'uac'");
}

TEST(MetricOptions, TargetsAreOfValuesThatTheHeadsHave) {
  const auto made = [](std::vector<std::string> heads, const std::string& target) {
    std::vector<Head> all(heads.size());
    for (size_t h = 0; h < heads.size(); ++h) all[h].name = heads[h];
    MetricOptions options;
    options.targets = {{target, 0.5}};
    const HeadMetrics metrics(std::move(all), options);
  };
  made({"loss"}, "auc");
  made({"a", "b"}, "auc");
  made({"a", "b"}, "log_loss/b");
  TERCEL_EXPECT_THROW(made({"loss"}, "auc/loss"), ConfigError, "solver: targets: the model has no 'auc/loss'");
  TERCEL_EXPECT_THROW(made({"a", "b"}, "log_loss"), ConfigError, "known: auc, auc/a, log_loss/a,");
}

TEST(MetricOptions, TargetsArePassedTogetherInTheirDirections) {
  using Values = std::vector<std::pair<std::string, double>>;
  const std::vector<MetricTarget> targets = {{"auc/a", 0.8}, {"log_loss", 0.4}};
  EXPECT_TRUE(passes_targets(targets, Values{{"auc/a", 0.81}, {"log_loss", 0.39}}));
  EXPECT_FALSE(passes_targets(targets, Values{{"auc/a", 0.8}, {"log_loss", 0.39}})) << "equal is not enough";
  EXPECT_FALSE(passes_targets(targets, Values{{"auc/a", 0.81}, {"log_loss", 0.41}}));
  EXPECT_FALSE(passes_targets(targets, Values{{"auc/a", 0.81}}));
  EXPECT_FALSE(passes_targets(targets, Values{{"auc/a", std::nan("")}, {"log_loss", 0.3}}));
  EXPECT_FALSE(passes_targets({}, Values{{"auc", 1}}));
}

}  // namespace
}  // namespace tercel::recsys
