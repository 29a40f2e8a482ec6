#include "tercel/ops/factories/windows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/tensors.h"

namespace tercel::test {

namespace {

using Values = std::vector<double>;

void expect_values(const Tensor& x, const Values& want) {
  const Values got = values_of(x);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
}

/** By its series. */
double bessel_i0(double x) {
  double sum = 0, term = 1;
  for (int k = 1; k < 30; ++k) {
    sum += term;
    term *= x * x / 4 / (k * k);
  }
  return sum;
}

}  // namespace

TEST(Windows, Symmetric) {
  expect_values(bartlett_window(5, false, kFloat64), {0, 0.5, 1, 0.5, 0});
  expect_values(blackman_window(5, false, kFloat64), {0, 0.34, 1, 0.34, 0});
  expect_values(hann_window(5, false, kFloat64), {0, 0.5, 1, 0.5, 0});
  expect_values(hamming_window(5, false, 0.54, 0.46, kFloat64), {0.08, 0.54, 1, 0.54, 0.08});
  expect_values(hamming_window(3, false, 0.5, 0.25, kFloat64), {0.25, 0.75, 0.25});
  const double top = bessel_i0(2), half = bessel_i0(2 * std::sqrt(0.75)) / top;
  expect_values(kaiser_window(5, false, 2, kFloat64), {1 / top, half, 1, half, 1 / top});
}

TEST(Windows, PeriodicOnesAreTheHeadOfALongerOne) {
  const auto head = [](const Tensor& x) {
    Values v = values_of(x);
    v.pop_back();
    return v;
  };
  expect_values(bartlett_window(6, true, kFloat64), head(bartlett_window(7, false, kFloat64)));
  expect_values(blackman_window(6, true, kFloat64), head(blackman_window(7, false, kFloat64)));
  expect_values(hann_window(6, true, kFloat64), head(hann_window(7, false, kFloat64)));
  expect_values(hamming_window(6, true, 0.6, 0.3, kFloat64), head(hamming_window(7, false, 0.6, 0.3, kFloat64)));
  expect_values(kaiser_window(6, true, 8, kFloat64), head(kaiser_window(7, false, 8, kFloat64)));
}

TEST(Windows, ShortOnesAndErrors) {
  for (const bool periodic : {false, true}) {
    expect_values(hann_window(1, periodic), {1});
    expect_values(kaiser_window(1, periodic), {1});
    EXPECT_EQ(bartlett_window(0, periodic).numel(), 0);
  }
  EXPECT_THROW(hamming_window(-1), RuntimeError);
  EXPECT_THROW(blackman_window(3, true, kInt64), RuntimeError);
  TensorOptions options(kFloat16);
  options.requires_grad = true;
  EXPECT_TRUE(hann_window(3, true, options).requires_grad());
}

}  // namespace tercel::test
