#include "tercel/nn/init.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tercel/util/parallel.h"
#include "tests/support/tensors.h"

namespace tercel::nn {
namespace {

using test::bytes_of;
using test::values_of;

struct Moments {
  double mean = 0, deviation = 0, low = 0, high = 0;
};

Moments moments_of(const Init& init, ScalarType dtype) {
  const Tensor x = empty({300, 400}, dtype);
  Generator generator(7);
  initialize(x, init, generator);
  Moments m;
  const std::vector<double> values = values_of(x);
  for (const double v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  for (const double v : values) m.deviation += (v - m.mean) * (v - m.mean);
  m.deviation = std::sqrt(m.deviation / static_cast<double>(values.size()));
  return m;
}

TEST(Init, ConstantsFillEveryElement) {
  const Tensor x = test::random({3, 5}, kFloat32, 1, 2, 1);
  Generator generator(1);
  initialize(x, Init::constant(2.5), generator);
  for (const double v : values_of(x)) EXPECT_EQ(v, 2.5);
  initialize(x, Init::zero(), generator);
  for (const double v : values_of(x)) EXPECT_EQ(v, 0);
  EXPECT_EQ(generator.state().offset, 0u) << "constants need no random numbers";
}

TEST(Init, DistributionsHaveTheirMoments) {
  for (const ScalarType dtype : {kFloat32, kFloat64}) {
    const Moments uniform = moments_of(Init::uniform(0.3), dtype);
    EXPECT_NEAR(uniform.mean, 0, 0.002);
    EXPECT_NEAR(uniform.deviation, 0.3 / std::sqrt(3), 0.001);
    EXPECT_NEAR(uniform.low, -0.3, 1e-4);
    EXPECT_NEAR(uniform.high, 0.3, 1e-4);
    EXPECT_GE(uniform.low, -0.3f);
    EXPECT_LE(uniform.high, 0.3f);
    const Moments normal = moments_of(Init::normal(0.2), dtype);
    EXPECT_NEAR(normal.mean, 0, 0.002);
    EXPECT_NEAR(normal.deviation, 0.2, 0.002);
    EXPECT_GT(normal.high, 0.7) << "nothing is cut off";
  }
}

// The values are those of HugeCTR's VarianceScaling with scale 1 and the mean of the fans, computed by hand.
TEST(Init, XavierFollowsTheFans) {
  EXPECT_DOUBLE_EQ(Init::xavier_uniform(300, 100).b, std::sqrt(3.0 / 200));
  EXPECT_DOUBLE_EQ(Init::xavier_uniform(300, 100).a, -std::sqrt(3.0 / 200));
  EXPECT_DOUBLE_EQ(Init::xavier_uniform(0, 8).b, std::sqrt(3.0 / 4));
  EXPECT_DOUBLE_EQ(Init::xavier_uniform(0, 1).b, std::sqrt(3.0)) << "fans count as 1 at least";
  EXPECT_DOUBLE_EQ(Init::xavier_normal(300, 100).b, std::sqrt(1.0 / 200) / 0.87962566103423978);
  EXPECT_DOUBLE_EQ(Init::xavier_normal(300, 100).a, 0);
}

TEST(InitThreads, NumbersDoNotDependOnThreads) {
  const int64_t threads = num_threads();
  std::string first;
  for (const int64_t n : {1, 2, 5}) {
    set_num_threads(n);
    const Tensor x = empty({50'000}, kFloat32);
    Generator generator(3);
    initialize(x, Init::normal(1), generator);
    if (first.empty()) first = bytes_of(x);
    EXPECT_EQ(bytes_of(x), first) << n << " threads";
  }
  set_num_threads(threads);
}

}  // namespace
}  // namespace tercel::nn
