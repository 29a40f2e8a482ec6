#include "tercel/ops/random/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/random/sample_statistics.h"
#include "tests/support/tensors.h"

namespace tercel::test {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double share(const Values& v, double value) {
  return static_cast<double>(std::count(v.begin(), v.end(), value)) / static_cast<double>(v.size());
}

}  // namespace

TEST(Sampling, BernoulliOfProbabilities) {
  Generator generator(1);
  const Tensor p = expand(tensor({{0.2}, {0.7}}), {2, kMany});
  const Tensor x = bernoulli(p, generator);
  EXPECT_EQ(x.dtype(), kFloat32);
  EXPECT_NEAR(mean_of(values_of(select(x, 0, 0))), 0.2, tolerance(0.16));
  EXPECT_NEAR(mean_of(values_of(select(x, 0, 1))), 0.7, tolerance(0.21));
  EXPECT_EQ(values_of(bernoulli_(empty({4}, kInt64), tensor({0.0, 1.0, 1.0, 0.0}))), (Values{0, 1, 1, 0}));
  EXPECT_THROW(bernoulli(tensor({0.5, 1.5})), RuntimeError);
  EXPECT_THROW(bernoulli(tensor({1, 0})), NotImplementedError);
  EXPECT_THROW(bernoulli_(empty({3}), tensor({0.5, 0.5})), RuntimeError);
}

TEST(Sampling, NormalOfMeansAndDeviations) {
  Generator generator(2);
  const Tensor mean = expand(tensor({{-3.0}, {100.0}}), {2, kMany});
  const Tensor x = normal(mean, tensor({{0.5}, {4.0}}), generator);
  for (const auto& [row, m, s] : {std::tuple{0, -3.0, 0.5}, {1, 100.0, 4.0}}) {
    const Values v = values_of(select(x, 0, row));
    EXPECT_NEAR(mean_of(v), m, tolerance(s * s));
    EXPECT_NEAR(variance_of(v), s * s, 0.02 * s * s);
  }
  EXPECT_EQ(normal(zeros({2}, kFloat64), ones({3, 2}), generator).dtype(), kFloat64);
  EXPECT_EQ(normal(zeros({2}), ones({3, 1}), generator).sizes(), (IntSpan{3, 2}));
  EXPECT_EQ(values_of(normal(tensor({1.0, 2.0}), 0, generator)), (Values{1, 2}));
  EXPECT_EQ(values_of(normal(7, zeros({2}), generator)), (Values{7, 7}));
  EXPECT_THROW(normal(zeros({2}), tensor({1.0, -1.0})), RuntimeError);
  EXPECT_THROW(normal(zeros({2}), -1), RuntimeError);
}

TEST(Sampling, Poisson) {
  Generator generator(3);
  // On both sides of the switch between methods.
  for (const double rate : {0.3, 4.0, 9.9, 10.0, 35.0, 2500.0}) {
    SCOPED_TRACE(rate);
    const Values v = values_of(poisson(full({kMany}, rate, kFloat64), generator));
    EXPECT_NEAR(mean_of(v), rate, tolerance(rate));
    EXPECT_NEAR(variance_of(v), rate, 0.03 * rate);
    EXPECT_GE(*std::min_element(v.begin(), v.end()), 0);
    const double k = std::floor(rate), chance = std::exp(k * std::log(rate) - rate - std::lgamma(k + 1));
    EXPECT_NEAR(share(v, k), chance, tolerance(chance));
  }
  EXPECT_EQ(values_of(poisson(zeros({3}, kFloat16))), (Values{0, 0, 0}));
  EXPECT_THROW(poisson(tensor({-1.0})), RuntimeError);
  EXPECT_THROW(poisson(tensor({kInf - kInf})), RuntimeError);
  EXPECT_THROW(poisson(tensor({1})), NotImplementedError);
}

TEST(Sampling, Binomial) {
  Generator generator(4);
  for (const auto& [n, p] : {std::pair{5.0, 0.3}, {40.0, 0.5}, {100.0, 0.97}, {1000.0, 0.001}, {1e6, 0.25}}) {
    SCOPED_TRACE(p);
    const Values v = values_of(binomial(full({kMany}, n, kFloat64), full({}, p, kFloat64), generator));
    EXPECT_NEAR(mean_of(v), n * p, tolerance(n * p * (1 - p)));
    EXPECT_NEAR(variance_of(v), n * p * (1 - p), 0.03 * n * p * (1 - p));
    EXPECT_GE(*std::min_element(v.begin(), v.end()), 0);
    EXPECT_LE(*std::max_element(v.begin(), v.end()), n);
  }
  EXPECT_EQ(values_of(binomial(tensor({7.0, 7.0, 0.0}), tensor({0.0, 1.0, 0.5}))), (Values{0, 7, 0}));
  EXPECT_THROW(binomial(tensor({-1.0}), tensor({0.5})), RuntimeError);
  EXPECT_THROW(binomial(tensor({1.0}), tensor({1.5})), RuntimeError);
}

TEST(Sampling, MultinomialWithReplacement) {
  Generator generator(5);
  const Tensor weights = tensor({{0.0, 1.0, 3.0, 0.0}, {2.0, 0.0, 0.0, 0.0}});
  const Tensor x = multinomial(weights, kMany, true, generator);
  EXPECT_EQ(x.dtype(), kInt64);
  const Values first = values_of(select(x, 0, 0));
  EXPECT_EQ(share(first, 0) + share(first, 3), 0);
  EXPECT_NEAR(share(first, 2), 0.75, tolerance(0.19));
  EXPECT_EQ(share(values_of(select(x, 0, 1)), 0), 1);
}

TEST(Sampling, MultinomialWithoutReplacement) {
  Generator generator(6);
  const Tensor weights = expand(tensor({0.0, 1.0, 2.0, 5.0}), {20'000, 4});
  const Tensor x = multinomial(weights, 3, false, generator);
  const auto* rows = x.data<int64_t>();
  Values firsts, seconds;
  for (int64_t r = 0; r < x.size(0); ++r) {
    const std::set<int64_t> row(rows + 3 * r, rows + 3 * r + 3);
    ASSERT_EQ(row, (std::set<int64_t>{1, 2, 3}));
    firsts.push_back(static_cast<double>(rows[3 * r]));
    if (rows[3 * r] == 3) seconds.push_back(static_cast<double>(rows[3 * r + 1]));
  }
  EXPECT_NEAR(share(firsts, 3), 0.625, 0.02);
  EXPECT_NEAR(share(firsts, 1), 0.125, 0.02);
  EXPECT_NEAR(share(seconds, 2), 2.0 / 3, 0.025);                              // of the remaining ones
  EXPECT_EQ(multinomial(tensor({0.0, 1.0}), 2, false, generator).numel(), 2);  // a weight of 0 comes last
  EXPECT_EQ(multinomial(empty({0, 3}), 2).sizes(), (IntSpan{0, 2}));
}

TEST(Sampling, MultinomialErrors) {
  EXPECT_THROW(multinomial(ones({3}), 4), RuntimeError);
  EXPECT_THROW(multinomial(ones({3}), 0), RuntimeError);
  EXPECT_THROW(multinomial(ones({0}), 1, true), RuntimeError);
  EXPECT_THROW(multinomial(ones({2, 2, 2}), 1), RuntimeError);
  EXPECT_THROW(multinomial(ones({3}, kInt64), 1), RuntimeError);
  for (const bool replacement : {false, true})
    for (const double wrong : {-1.0, kInf, kInf - kInf})
      EXPECT_THROW(multinomial(tensor({1.0, wrong}), 1, replacement), RuntimeError);
  EXPECT_THROW(multinomial(zeros({3}), 1), RuntimeError);
}

TEST(Sampling, GradientsAreZero) {
  const auto parameter = [] { return full({3}, 0.5).requires_grad_(); };
  const Tensor p = parameter(), rate = parameter(), mean = parameter(), stddev = parameter();
  sum(bernoulli(p) + poisson(rate) + normal(mean, stddev) + normal(mean, 1) + normal(0, stddev)).backward();
  for (const Tensor& x : {p, rate, mean, stddev}) EXPECT_EQ(values_of(x.grad()), (Values{0, 0, 0}));
  // Overwritten elements do not count.
  const Tensor x = parameter();
  for (const auto& overwrite : std::vector<std::function<const Tensor&(const Tensor&)>>{
           [](const Tensor& y) -> const Tensor& { return uniform_(y); },
           [](const Tensor& y) -> const Tensor& { return normal_(y); },
           [](const Tensor& y) -> const Tensor& { return log_normal_(y); },
           [](const Tensor& y) -> const Tensor& { return exponential_(y); },
           [](const Tensor& y) -> const Tensor& { return cauchy_(y); },
           [](const Tensor& y) -> const Tensor& { return geometric_(y, 0.5); },
           [](const Tensor& y) -> const Tensor& { return random_(y); },
           [](const Tensor& y) -> const Tensor& { return random_(y, 0, 5); },
           [](const Tensor& y) -> const Tensor& { return bernoulli_(y); },
           [](const Tensor& y) -> const Tensor& { return bernoulli_(y, full({3}, 0.5)); }}) {
    const Tensor y = x * 2;
    sum(overwrite(y)).backward();
    EXPECT_EQ(values_of(x.grad()), (Values{0, 0, 0}));
  }
}

TEST(SamplingThreads, SameNumbersForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  std::string want;
  for (const int64_t threads : {1, 2, 5}) {
    set_num_threads(threads);
    Generator generator(9);
    const Tensor p = rand({30'001}, {}, generator);
    const std::string got = bytes_of(bernoulli(p, generator)) + bytes_of(poisson(p * 30, generator)) +
                            bytes_of(binomial(full({30'001}, 100.0), p, generator)) +
                            bytes_of(multinomial(rand({500, 40}, {}, generator), 7, false, generator)) +
                            bytes_of(multinomial(rand({500, 40}, {}, generator), 70, true, generator));
    if (threads == 1) want = got;
    EXPECT_TRUE(got == want) << threads << " threads";
  }
  set_num_threads(before);
}

}  // namespace tercel::test
