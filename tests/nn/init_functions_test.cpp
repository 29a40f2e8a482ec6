#include "tercel/nn/init_functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tercel/ops/factories/factories.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::nn {
namespace {

using test::values_of;

struct Statistics {
  double mean = 0, std = 0, low = 0, high = 0;
};
Statistics statistics_of(const Tensor& x) {
  const std::vector<double> v = values_of(x);
  Statistics s;
  for (const double value : v) s.mean += value / static_cast<double>(v.size());
  for (const double value : v) s.std += (value - s.mean) * (value - s.mean) / static_cast<double>(v.size());
  s.std = std::sqrt(s.std);
  s.low = *std::min_element(v.begin(), v.end());
  s.high = *std::max_element(v.begin(), v.end());
  return s;
}

TEST(InitFunctions, VarianceFollowsTheFans) {
  const Tensor x = empty({40, 20, 3, 3});
  EXPECT_NEAR(statistics_of(init::xavier_uniform_(x)).std, std::sqrt(2.0 / 540), 0.002);
  EXPECT_NEAR(statistics_of(init::xavier_normal_(x, 2)).std, 2 * std::sqrt(2.0 / 540), 0.004);
  EXPECT_NEAR(statistics_of(init::kaiming_uniform_(x, 1)).std, std::sqrt(1.0 / 180), 0.002);
  EXPECT_NEAR(statistics_of(init::kaiming_normal_(x, 0, init::FanMode::FanOut, init::Nonlinearity::Relu)).std,
              std::sqrt(2.0 / 360), 0.003);
  EXPECT_LE(statistics_of(init::uniform_(x, -2, 3)).high, 3);
  EXPECT_NEAR(statistics_of(init::normal_(x, 1, 2)).mean, 1, 0.1);
  TERCEL_EXPECT_THROW(init::xavier_uniform_(empty({3})), ValueError,
                      "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
}

TEST(InitFunctions, TruncatedNumbersStayInside) {
  const Statistics s = statistics_of(init::trunc_normal_(empty({5000}), 1, 2, 0, 2));
  EXPECT_GE(s.low, 0);
  EXPECT_LE(s.high, 2);
  EXPECT_NEAR(s.mean, 1, 0.05);
  // Of a normal distribution cut at half a standard deviation.
  EXPECT_NEAR(s.std, 0.5683, 0.03);
}

TEST(InitFunctions, ConstantsEyeAndDirac) {
  EXPECT_EQ(values_of(init::constant_(empty({2}), 3)), (std::vector<double>{3, 3}));
  EXPECT_EQ(values_of(init::ones_(empty({1}))), std::vector<double>{1});
  EXPECT_EQ(values_of(init::zeros_(empty({1}))), std::vector<double>{0});
  EXPECT_EQ(values_of(init::eye_(empty({2, 3}))), (std::vector<double>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(values_of(init::dirac_(empty({2, 2, 3}))), (std::vector<double>{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}));
  TERCEL_EXPECT_THROW(init::eye_(empty({2})), ValueError, "Only tensors with 2 dimensions are supported");
  TERCEL_EXPECT_THROW(init::dirac_(empty({2})), ValueError, "Only tensors with 3, 4, or 5 dimensions are supported");
}

TEST(InitFunctions, OrthogonalRowsOrColumns) {
  for (const auto& sizes : {test::Sizes{3, 7}, test::Sizes{7, 3}}) {
    const std::vector<double> v = values_of(init::orthogonal_(empty(sizes, kFloat64), 2));
    const bool wide = sizes[0] < sizes[1];
    for (size_t i = 0; i < 3; ++i)
      for (size_t k = 0; k < 3; ++k) {
        double dot = 0;
        for (size_t j = 0; j < 7; ++j) dot += wide ? v[i * 7 + j] * v[k * 7 + j] : v[j * 3 + i] * v[j * 3 + k];
        EXPECT_NEAR(dot, i == k ? 4 : 0, 1e-9);
      }
  }
}

TEST(InitFunctions, Gains) {
  EXPECT_DOUBLE_EQ(init::calculate_gain(init::Nonlinearity::Linear), 1);
  EXPECT_DOUBLE_EQ(init::calculate_gain(init::Nonlinearity::Tanh), 5.0 / 3);
  EXPECT_DOUBLE_EQ(init::calculate_gain(init::Nonlinearity::Relu), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(init::calculate_gain(init::Nonlinearity::LeakyRelu, 0.2), std::sqrt(2 / 1.04));
  EXPECT_DOUBLE_EQ(init::calculate_gain(init::Nonlinearity::Selu), 0.75);
}

}  // namespace
}  // namespace tercel::nn
