#include "tercel/recsys/layers/batch_norm.h"

#include <cmath>

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

TEST(BatchNormLayer, ValuesOfTheBatchAndOfTheRunningStatistics) {
  Built layer("BatchNorm", {{2}}, R"({"bn_param": {"factor": 0.25, "eps": 0.01}})");
  const Tensor x = numbers({5, 2}, 1, -1, 3);
  const Values v = values_of(x);
  double mean[2] = {}, var[2] = {};
  for (size_t i = 0; i < 10; ++i) mean[i % 2] += v[i] / 5;
  for (size_t i = 0; i < 10; ++i) var[i % 2] += (v[i] - mean[i % 2]) * (v[i] - mean[i % 2]) / 5;
  Values expected;
  for (size_t i = 0; i < 10; ++i) expected.push_back((v[i] - mean[i % 2]) / std::sqrt(var[i % 2] + 0.01));
  expect_near(values_of(layer.run({x})), expected);

  const auto buffers = layer.layer->buffers();
  ASSERT_EQ(buffers.size(), 2u);
  EXPECT_EQ(buffers[0].first, "x.running_mean");
  EXPECT_EQ(buffers[1].first, "x.running_var");
  const Values running_mean = values_of(buffers[0].second), running_var = values_of(buffers[1].second);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(running_mean[i], 0.25 * mean[i], 1e-6);
    // 0.75 of the initial 1, and the batch's variance: of the sample, with 5 rows 5/4 of the other, or the plain one.
    EXPECT_TRUE(std::abs(running_var[i] - (0.75 + 0.25 * var[i] * 5 / 4)) < 1e-6 ||
                std::abs(running_var[i] - (0.75 + 0.25 * var[i])) < 1e-6)
        << running_var[i] << ", variance " << var[i];
  }
  Values evaluated;
  for (size_t i = 0; i < 10; ++i)
    evaluated.push_back((v[i] - running_mean[i % 2]) / std::sqrt(running_var[i % 2] + 0.01));
  expect_near(values_of(layer.run({x}, false)), evaluated, 1e-6);
  EXPECT_EQ(values_of(layer.layer->buffers()[0].second), running_mean) << "evaluation leaves them alone";
  EXPECT_TRUE(layer.gradients({x}));
}

TEST(BatchNormLayer, OptionsAndRefusals) {
  Built last("BatchNorm", {{2}});
  last.run({make({2, 2}, kFloat64, {1, 10, 3, 30})});
  expect_near(values_of(last.layer->buffers()[0].second), {2, 20}, 1e-6);
  EXPECT_EQ(last.parameter("gamma"), (Values{1, 1}));
  EXPECT_EQ(last.parameter("beta"), (Values{0, 0}));
  EXPECT_EQ(Built("BatchNorm", {{2}}, R"({"bn_param": {"gamma_init": "Zero"}})").parameter("gamma"), (Values{0, 0}));
  refuses("BatchNorm", {{2, 3}}, "{}", "[BatchNorm x] expected one input [batch, n] but got [batch, 2, 3]");
  refuses("BatchNorm", {{2}}, R"({"bn_param": {"factor": 1.5}})", "factor");
  refuses("BatchNorm", {{2}}, R"({"bn_param": {"eps": 0}})", "eps");
}

}  // namespace
}  // namespace tercel::recsys
