#include "tercel/recsys/metrics/binary_problems.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tercel/recsys/metrics/head_metrics.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using test::make;

Head head_of(LossKind kind, int64_t columns, int64_t label_columns) {
  Head head;
  head.name = "loss";
  head.kind = kind;
  head.columns = columns;
  head.label_columns = label_columns;
  return head;
}

double value_of(const HeadMetrics& metrics, std::string_view name) {
  for (const auto& [found, value] : metrics.values())
    if (found == name) return value;
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

/** Pairs of a positive and a negative row that are in order. */
double auc_of(const std::vector<double>& scores, const std::vector<double>& labels) {
  double right = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    for (size_t j = 0; j < scores.size(); ++j)
      if (labels[i] == 1 && labels[j] == 0) {
        pairs += 1;
        right += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
      }
  return right / pairs;
}

const std::vector<double> kLogits = {0.5, 1, -1, 2, -1, 0, 0.25, 0.5, 1.5, -3, 0, 3, 1, 2, 3, -4, 0, 1};
const std::vector<double> kNumbers = {0, 1, 2, 2, 1, 0};  // of classes

TEST(BinaryProblems, OfClassesAreEachAgainstAllOthers) {
  const Head head = head_of(LossKind::Classes, 3, 1);
  EXPECT_EQ(count_binary_problems(head), 3);
  HeadMetrics metrics({head});
  metrics.add(std::vector<Tensor>{make({6, 3}, kFloat32, kLogits)}, make({6, 1}, kFloat32, kNumbers));
  double auc = 0, loss = 0;
  for (size_t c = 0; c < 3; ++c) {
    std::vector<double> probabilities, labels;
    for (size_t row = 0; row < 6; ++row) {
      double sum = 0;
      for (size_t i = 0; i < 3; ++i) sum += std::exp(kLogits[row * 3 + i]);
      const double p = std::exp(kLogits[row * 3 + c]) / sum, y = kNumbers[row] == static_cast<double>(c) ? 1 : 0;
      probabilities.push_back(p);
      labels.push_back(y);
      loss -= (y * std::log(p) + (1 - y) * std::log(1 - p)) / 18;
    }
    auc += auc_of(probabilities, labels) / 3;
  }
  EXPECT_NEAR(value_of(metrics, "auc"), auc, 1e-12);
  EXPECT_NEAR(value_of(metrics, "log_loss"), loss, 1e-6);
}

TEST(BinaryProblems, TwoClassesAreOne) {
  const std::vector<float> logits = {1, 3, 0, -2}, numbers = {1, 0}, shares = {0, 1, 0.75, 0.25};
  for (const bool has_shares : {false, true}) {
    const Head head = head_of(LossKind::Classes, 2, has_shares ? 2 : 1);
    const std::vector<BinaryRows> all = binary_problems(head, logits, has_shares ? shares : numbers);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].logits, (std::vector<float>{2, -2}));
    EXPECT_EQ(all[0].labels, has_shares ? (std::vector<float>{1, 0.25}) : (std::vector<float>{1, 0}));
  }
}

TEST(BinaryProblems, ColumnsLeaveOutUnknownLabels) {
  const Head head = head_of(LossKind::Columns, 2, 2);
  const std::vector<float> logits = {1, 2, 3, 4, 5, 6}, labels = {1, -1, -1, 0, 0, 1};
  const std::vector<BinaryRows> all = binary_problems(head, logits, labels);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].logits, (std::vector<float>{1, 5}));
  EXPECT_EQ(all[0].labels, (std::vector<float>{1, 0}));
  EXPECT_EQ(all[1].logits, (std::vector<float>{4, 6}));
  EXPECT_EQ(all[1].labels, (std::vector<float>{0, 1}));
  EXPECT_EQ(binary_problems(head, std::vector<float>(), std::vector<float>())[0].logits.size(), 0u);
}

TEST(BinaryProblems, ColumnsWithoutAValueAreLeftOutOfTheMean) {
  const Head head = head_of(LossKind::Columns, 2, 2);
  HeadMetrics metrics({head});
  EXPECT_TRUE(std::isnan(value_of(metrics, "auc"))) << "no rows";
  // The second column has labels of one class only, and all but one unknown.
  metrics.add(std::vector<Tensor>{make({3, 2}, kFloat32, {1, 0, 2, 0, 3, 0})},
              make({3, 2}, kFloat32, {0, 1, 1, -1, 0, -1}));
  EXPECT_NEAR(value_of(metrics, "auc"), 0.5, 1e-12);
  metrics.add(std::vector<Tensor>{make({1, 2}, kFloat32, {std::numeric_limits<double>::quiet_NaN(), 0})},
              make({1, 2}, kFloat32, {1, 1}));
  EXPECT_TRUE(std::isnan(value_of(metrics, "auc")));
}

}  // namespace
}  // namespace tercel::recsys
