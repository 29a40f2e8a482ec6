#include "tercel/recsys/metrics/head_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

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

}  // namespace
}  // namespace tercel::recsys
