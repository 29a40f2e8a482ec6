#include <gtest/gtest.h>

#include "tercel/data/time_sample_impl.h"

namespace tercel::data {
namespace {

std::optional<double> last_tenth(const std::vector<double>& times) {
  TimeSample sample;
  for (const double time : times) sample.add(time);
  return sample.start_of_last(0.1);
}

TEST(TimeSample, FindsTheLastTenth) {
  std::vector<double> times;
  for (int i = 0; i < 100; ++i) times.push_back(i * 37 % 100);
  EXPECT_EQ(last_tenth(times), 90);
  times.assign(100, 5);
  EXPECT_EQ(last_tenth(times), std::nullopt) << "all at once";
  EXPECT_EQ(last_tenth({1, 2, 3}), std::nullopt) << "no tenth";
  times.clear();
  for (int i = 0; i < 100; ++i) times.push_back(i / 8);  // 12: four rows, 11: eight
  EXPECT_EQ(last_tenth(times), 12) << "rows of one time stay together";
}

TEST(TimeSample, KeepsEveryNthOfMany) {
  TimeSample sample;
  constexpr int64_t kCount = 10'000'019;
  for (int64_t i = 0; i < kCount; ++i) sample.add(static_cast<double>(i * 7 % kCount));
  const std::optional<double> start = sample.start_of_last(0.1);
  ASSERT_TRUE(start);
  EXPECT_NEAR(*start, 0.9 * kCount, 0.001 * kCount);
}

}  // namespace
}  // namespace tercel::data
