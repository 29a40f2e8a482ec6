#include "tercel/recsys/layers/dice.h"

#include <cmath>

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

double dice(double x, double mean, double var, double eps, double alpha) {
  const double p = 1 / (1 + std::exp(-(x - mean) / std::sqrt(var + eps)));
  return p * x + (1 - p) * alpha * x;
}

TEST(PReluDiceLayer, ValuesAndFullGradients) {
  Built layer("PReLU_Dice", {{2}}, R"({"prelu_dice_param": {"alpha": 0.2, "eps": 0.01, "factor": 0.25}})");
  const Tensor x = numbers({5, 2}, 1, -1, 3);
  const Values v = values_of(x);
  double mean[2] = {}, var[2] = {};
  for (size_t i = 0; i < 10; ++i) mean[i % 2] += v[i] / 5;
  for (size_t i = 0; i < 10; ++i) var[i % 2] += (v[i] - mean[i % 2]) * (v[i] - mean[i % 2]) / 5;
  Values expected;
  for (size_t i = 0; i < 10; ++i) expected.push_back(dice(v[i], mean[i % 2], var[i % 2], 0.01, 0.2));
  expect_near(values_of(layer.run({x})), expected);
  const auto buffers = layer.layer->buffers();
  ASSERT_EQ(buffers.size(), 2u);
  EXPECT_EQ(buffers[0].first, "x.running_mean");
  EXPECT_EQ(buffers[1].first, "x.running_var");
  const Values running_mean = values_of(buffers[0].second), running_var = values_of(buffers[1].second);
  Values evaluated;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(running_mean[i], 0.25 * mean[i], 1e-12);
    EXPECT_NEAR(running_var[i], 0.75 + 0.25 * var[i] * 5 / 4, 1e-12) << "the variance of the sample, as BatchNorm";
  }
  for (size_t i = 0; i < 10; ++i) evaluated.push_back(dice(v[i], running_mean[i % 2], running_var[i % 2], 0.01, 0.2));
  expect_near(values_of(layer.run({x}, false)), evaluated);
  EXPECT_EQ(values_of(layer.layer->buffers()[0].second), running_mean) << "evaluation leaves them alone";
  EXPECT_TRUE(layer.gradients({x})) << "of every element with respect to every row, through mean and variance";
}

TEST(PReluDiceLayer, ARowInEvaluationDoesNotDependOnOthers) {
  Built layer("PReLU_Dice", {{3}});
  layer.run({numbers({8, 3}, 1)});
  const Tensor x = numbers({4, 3}, 2);
  const Values all = values_of(layer.run({x}, false));
  for (int64_t r = 0; r < 4; ++r)
    EXPECT_EQ(values_of(layer.run({x.narrow(0, r, 1)}, false)), Values(all.begin() + 3 * r, all.begin() + 3 * r + 3));
}

TEST(PReluDiceLayer, ABatchOfOneRowUsesTheRunningStatistics) {
  Built layer("PReLU_Dice", {{2}}, R"({"prelu_dice_param": {"alpha": 0.2, "eps": 1e-8}})");
  layer.run({numbers({6, 2}, 1)});
  const Tensor x = numbers({1, 2}, 5);
  const Values before = values_of(layer.layer->buffers()[0].second);
  EXPECT_EQ(values_of(layer.run({x}, true)), values_of(layer.run({x}, false)));
  EXPECT_EQ(values_of(layer.layer->buffers()[0].second), before);
  EXPECT_TRUE(layer.gradients({x}));
}

TEST(PReluDiceLayer, OptionsAndRefusals) {
  const Tensor x = numbers({4, 2});
  expect_near(values_of(Built("PReLU_Dice", {{2}}).run({x})), values_of(x));  // alpha 1
  // A column of equal values: the gate is half open.
  Built layer("PReLU_Dice", {{1}}, R"({"prelu_dice_param": {"alpha": 0, "eps": 1e-8}})");
  expect_near(values_of(layer.run({make({3, 1}, kFloat64, {2, 2, 2})})), {1, 1, 1});
  refuses("PReLU_Dice", {{2, 3}}, "{}", "[PReLU_Dice x] expected one input [batch, n] but got [batch, 2, 3]");
  refuses("PReLU_Dice", {{2}}, R"({"prelu_dice_param": {"eps": 0}})", "eps");
  refuses("PReLU_Dice", {{2}}, R"({"prelu_dice_param": {"factor": 0}})", "factor");
}

}  // namespace
}  // namespace tercel::recsys
