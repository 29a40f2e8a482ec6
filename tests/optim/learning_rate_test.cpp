#include "tercel/optim/learning_rate.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tercel::optim {
namespace {

TEST(LearningRate, ConstantUnlessToldOtherwise) {
  const LearningRateOptions options{.lr = 0.25};
  for (const int64_t step : {int64_t{1}, int64_t{2}, int64_t{1000}, std::numeric_limits<int64_t>::max()})
    EXPECT_EQ(learning_rate(options, step), 0.25) << step;
  EXPECT_EQ(learning_rate({.lr = 0.25, .warmup_steps = 0}, 1), 0.25) << "no warm-up at all";
}

TEST(LearningRate, Table) {
  const LearningRateOptions options{
      .lr = 8, .warmup_steps = 4, .decay_start = 10, .decay_steps = 4, .decay_power = 2, .end_lr = 1};
  // Increases by 2 per step, constant until step 10, decreases as 8 (left / 4)^2 down to 1, then constant.
  const double expected[] = {2, 4, 6, 8, 8, 8, 8, 8, 8, 8, 4.5, 2, 1, 1, 1, 1};
  for (size_t i = 0; i < std::size(expected); ++i)
    EXPECT_DOUBLE_EQ(learning_rate(options, static_cast<int64_t>(i) + 1), expected[i]) << "step " << i + 1;
}

// The formula as reference: each piece with its own bounds, in the order of steps.
double by_formula(const LearningRateOptions& o, int64_t step) {
  const auto s = static_cast<double>(step), warmup = static_cast<double>(o.warmup_steps);
  const auto start = static_cast<double>(o.decay_start), length = static_cast<double>(o.decay_steps);
  if (s <= warmup) return s * o.lr / warmup;
  if (start == 0 || s <= start) return o.lr;
  if (s <= start + length) return std::max(o.end_lr, o.lr * std::pow((start + length - s) / length, o.decay_power));
  return o.end_lr;
}

TEST(LearningRate, FollowsTheFormula) {
  for (const int64_t warmup : {0, 1, 3, 20})
    for (const int64_t start : {0, 1, 5, 17, 30})
      for (const int64_t length : {1, 7, 40})
        for (const double power : {1.0, 2.0, 3.5})
          for (const double end : {0.0, 0.001, 0.5, 2.0}) {
            const LearningRateOptions o{.lr = 0.7,
                                        .warmup_steps = warmup,
                                        .decay_start = start,
                                        .decay_steps = length,
                                        .decay_power = power,
                                        .end_lr = end};
            for (int64_t step = 1; step < 90; ++step) {
              const double expected = by_formula(o, step);
              EXPECT_NEAR(learning_rate(o, step), expected, 1e-15 + 1e-13 * expected)
                  << "step " << step << ", warm-up " << warmup << ", decay from " << start << " over " << length;
            }
          }
}

TEST(LearningRate, LargestNumbersDoNotOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const LearningRateOptions options{.lr = 0.5, .decay_start = kMost - 1, .decay_steps = kMost, .end_lr = 0.1};
  EXPECT_EQ(learning_rate(options, kMost - 1), 0.5);
  EXPECT_NEAR(learning_rate(options, kMost), 0.5, 1e-9);
  EXPECT_EQ(learning_rate({.lr = 0.5, .decay_start = 1, .decay_steps = 1, .end_lr = 0.1}, kMost), 0.1);
}

TEST(LearningRate, OptionsAreChecked) {
  LearningRateOptions options;
  set_option(options, "solver", "lr=0");
  TERCEL_EXPECT_THROW(set_option(options, "solver", "lr=-1"), ConfigError, "'lr': expected at least 0, found -1");
  TERCEL_EXPECT_THROW(set_option(options, "solver", "decay_power=0.5"), ConfigError, "expected at least 1");
  TERCEL_EXPECT_THROW(set_option(options, "solver", "decay_steps=0"), ConfigError, "expected at least 1");
  TERCEL_EXPECT_THROW(set_option(options, "solver", "end_lr=-0.1"), ConfigError, "expected at least 0");
}

}  // namespace
}  // namespace tercel::optim
