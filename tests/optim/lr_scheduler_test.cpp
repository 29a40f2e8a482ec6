#include "tercel/optim/lr_scheduler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tercel/ops/factories/factories.h"
#include "tests/support/errors.h"

namespace tercel::optim {
namespace {

std::vector<double> rates(LRScheduler& scheduler, int count) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(scheduler.get_last_lr()[0]);
    if (i + 1 < count) scheduler.step();
  }
  return out;
}

void expect_rates(LRScheduler& scheduler, const std::vector<double>& want) {
  const std::vector<double> got = rates(scheduler, static_cast<int>(want.size()));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-9) << i;
}

TEST(LrScheduler, FollowsPyTorch) {
  {
    SGD o({zeros({1}).requires_grad_()}, {.lr = 1});
    StepLR s(o, 2);
    expect_rates(s, {1, 1, 0.1, 0.1, 0.01});
  }
  {
    SGD o({zeros({1}).requires_grad_()}, {.lr = 1});
    MultiStepLR s(o, {1, 3}, 0.5);
    expect_rates(s, {1, 0.5, 0.5, 0.25, 0.25});
  }
  {
    SGD o({zeros({1}).requires_grad_()}, {.lr = 2});
    ExponentialLR s(o, 0.5);
    expect_rates(s, {2, 1, 0.5});
  }
  {
    SGD o({zeros({1}).requires_grad_()}, {.lr = 1});
    CosineAnnealingLR s(o, 4, 0.2);
    expect_rates(s, {1, 0.2 + 0.4 * (1 + std::sqrt(0.5)), 0.6, 0.2 + 0.4 * (1 - std::sqrt(0.5)), 0.2});
  }
  {
    SGD o({zeros({1}).requires_grad_()}, {.lr = 1});
    LinearLR s(o, 0.5, 1, 2);
    expect_rates(s, {0.5, 0.75, 1, 1});
  }
  {
    SGD o({zeros({1}).requires_grad_()}, {.lr = 3});
    LambdaLR s(o, [](int64_t epoch) { return 1 / static_cast<double>(epoch + 1); });
    expect_rates(s, {3, 1.5, 1});
    EXPECT_EQ(s.last_epoch(), 2);
  }
}

TEST(LrScheduler, OneCycleRisesAndFalls) {
  SGD o({zeros({1}).requires_grad_()}, {.lr = 5});
  OneCycleLR s(o, 1, 10, 0.3, 25, 10);
  const std::vector<double> got = rates(s, 10);
  EXPECT_NEAR(got[0], 0.04, 1e-12);
  EXPECT_NEAR(got[1], 0.52, 1e-12);
  EXPECT_NEAR(got[2], 1, 1e-12);
  EXPECT_NEAR(got[9], 0.004, 1e-12);
  for (size_t i = 3; i < 10; ++i) EXPECT_LT(got[i], got[i - 1]);
  TERCEL_EXPECT_THROW(s.step(), ValueError, "Tried to step 10 times. The total number of steps is 10");
}

TEST(LrScheduler, PlateauLowersTheRateAfterItsPatience) {
  SGD o({zeros({1}).requires_grad_()}, {.lr = 1});
  ReduceLROnPlateau s(o, 0.1, 2, 1e-4, 0, 0.05);
  const auto rate = [&] { return o.param_groups()[0].options.lr; };
  for (const double metric : {1.0, 0.9, 0.95, 0.95}) s.step(metric);
  EXPECT_EQ(rate(), 1);
  s.step(0.95);
  EXPECT_DOUBLE_EQ(rate(), 0.1);
  for (int i = 0; i < 3; ++i) s.step(2);
  EXPECT_DOUBLE_EQ(rate(), 0.05);
  TERCEL_EXPECT_THROW(ReduceLROnPlateau(o, 1), ValueError, "Factor should be < 1.0.");
}

}  // namespace
}  // namespace tercel::optim
