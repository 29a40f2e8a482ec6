#include "tercel/ops/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/views.h"
#include "tercel/util/parallel.h"
#include "tests/support/tensors.h"

namespace tercel::test {

namespace {

using Values = std::vector<double>;
constexpr int64_t kMany = 200'000;

double mean_of(const Values& v) { return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size()); }
double variance_of(const Values& v) {
  const double mean = mean_of(v);
  double sum = 0;
  for (const double x : v) sum += (x - mean) * (x - mean);
  return sum / static_cast<double>(v.size());
}
/** How far a mean of kMany numbers of this variance may be off: five standard deviations. */
double tolerance(double variance) { return 5 * std::sqrt(variance / static_cast<double>(kMany)); }

}  // namespace

TEST(Random, UniformNumbers) {
  for (const ScalarType t : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    SCOPED_TRACE(std::string(to_string(t)));
    Generator generator(3);
    const Values v = values_of(rand({kMany}, t, generator));
    EXPECT_GE(*std::min_element(v.begin(), v.end()), 0);
    // Rounding to 16 bits may reach 1.
    EXPECT_LE(*std::max_element(v.begin(), v.end()), 1);
    EXPECT_NEAR(mean_of(v), 0.5, tolerance(1.0 / 12) + (t == kBFloat16 ? 2e-3 : 0));
    EXPECT_NEAR(variance_of(v), 1.0 / 12, 2e-3);
  }
  Generator generator(4);
  const Values v = values_of(uniform_(empty({kMany}), -3, 5, generator));
  EXPECT_GE(*std::min_element(v.begin(), v.end()), -3);
  EXPECT_LT(*std::max_element(v.begin(), v.end()), 5);
  EXPECT_NEAR(mean_of(v), 1, tolerance(64.0 / 12));
}

TEST(Random, NormalNumbers) {
  for (const ScalarType t : {kFloat32, kFloat64}) {
    Generator generator(5);
    const Values v = values_of(normal_(empty({kMany}, t), 2, 3, generator));
    EXPECT_NEAR(mean_of(v), 2, tolerance(9));
    EXPECT_NEAR(variance_of(v), 9, 0.3);
    // Two thirds lie within one standard deviation.
    const auto near = std::count_if(v.begin(), v.end(), [](double x) { return std::abs(x - 2) < 3; });
    EXPECT_NEAR(static_cast<double>(near) / kMany, 0.6827, 0.01);
  }
}

TEST(Random, Integers) {
  Generator generator(6);
  const Tensor x = randint(-2, 3, {kMany}, kInt64, generator);
  std::vector<int64_t> counts(5, 0);
  for (int64_t i = 0; i < kMany; ++i) ++counts.at(static_cast<size_t>(x.data<int64_t>()[i] + 2));
  for (const int64_t c : counts) EXPECT_NEAR(static_cast<double>(c) / kMany, 0.2, 0.01);
  EXPECT_EQ(randint(0, 2, {3}, kUInt8, generator).dtype(), kUInt8);
  EXPECT_THROW(randint(3, 3, {1}), RuntimeError);
}

TEST(Random, BernoulliAndPermutations) {
  Generator generator(7);
  EXPECT_NEAR(mean_of(values_of(bernoulli_(empty({kMany}), 0.3, generator))), 0.3, tolerance(0.21));
  EXPECT_EQ(values_of(bernoulli_(empty({50}, kBool), 1, generator)), Values(50, 1));
  EXPECT_EQ(values_of(bernoulli_(empty({50}), 0, generator)), Values(50, 0));
  Values order = values_of(randperm(1000, generator));
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  EXPECT_NE(values_of(randperm(1000, generator)), order);
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], static_cast<double>(i));
  EXPECT_EQ(randperm(0).numel(), 0);
}

TEST(Random, SameSeedSameNumbersWhateverThePlacement) {
  Generator generator(8);
  const std::string first = bytes_of(randn({13, 40}, {}, generator)), second = bytes_of(randn({13, 40}, {}, generator));
  EXPECT_NE(first, second);
  generator.set_seed(8);
  EXPECT_EQ(bytes_of(randn({13, 40}, {}, generator)), first);
  generator.set_seed(8);
  const Tensor transposed = t(empty({40, 13}));
  EXPECT_EQ(bytes_of(normal_(transposed, 0, 1, generator)), first);
  // The head of a longer tensor is the same.
  generator.set_seed(8);
  EXPECT_EQ(bytes_of(randn({7}, {}, generator)), first.substr(0, 28));
}

TEST(Random, WrongOperands) {
  EXPECT_THROW(uniform_(empty({2}), 3, 1), RuntimeError);
  EXPECT_THROW(normal_(empty({2}), 0, -1), RuntimeError);
  EXPECT_THROW(bernoulli_(empty({2}), 1.5), RuntimeError);
  EXPECT_THROW(uniform_(empty({2}, kInt64)), Error);
  EXPECT_THROW(randperm(-1), RuntimeError);
  Tensor leaf = empty({2});
  leaf.requires_grad_();
  EXPECT_THROW(normal_(leaf), RuntimeError);
  const NoGradGuard no_grad;
  const uint32_t version = leaf.version();
  normal_(leaf);
  EXPECT_GT(leaf.version(), version);
}

TEST(RandomThreads, SameNumbersForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  std::string want;
  for (const int64_t threads : {1, 2, 5}) {
    set_num_threads(threads);
    Generator generator(9);
    std::string got = bytes_of(randn({100'001}, {}, generator));
    got += bytes_of(rand({70'003}, kFloat64, generator)) +
           bytes_of(randint(0, 1'000'000, {50'000}, kInt64, generator)) +
           bytes_of(bernoulli_(empty({33'333}), 0.5, generator)) + bytes_of(randperm(30'000, generator));
    if (threads == 1) want = got;
    EXPECT_TRUE(got == want) << threads << " threads";
  }
  set_num_threads(before);
}

}  // namespace tercel::test
