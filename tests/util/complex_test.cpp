#include "tercel/util/complex.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>

namespace tercel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
using C = Complex<double>;
using Std = std::complex<double>;
using Wide = std::complex<long double>;

static_assert(C(1, 2) * C(3, 4) == C(-5, 10) && C(1, 2) + C(3, 4) == C(4, 6) && -C(1, 2) == C(-1, -2));
static_assert(C(-5, 10) / C(3, 4) == C(1, 2) && conj(C(1, 2)) == C(1, -2) && C(2) == C(2, 0));

/** Any magnitude. */
class Numbers {
 public:
  double operator()() { return std::ldexp(mantissa_(generator_), exponent_(generator_)); }

 private:
  std::mt19937_64 generator_{7};
  std::uniform_real_distribution<double> mantissa_{-2, 2};
  std::uniform_int_distribution<int> exponent_{-1060, 1020};
};

TEST(Complex, IsLaidOutAsInTheStandardLibrary) {
  const Std standard(1.5, -2);
  const C z(standard);
  EXPECT_EQ(std::memcmp(&z, &standard, sizeof z), 0);
  EXPECT_EQ(z.as<Std>(), standard);
  EXPECT_EQ(Complex<float>(z).re, 1.5f);
}

TEST(Complex, QuotientsOfAnyMagnitude) {
  Numbers next;
  for (int i = 0; i < 20000; ++i) {
    const C a(next(), next()), b(next(), next());
    const Wide want = Wide(a.re, a.im) / Wide(b.re, b.im);
    const long double size = std::abs(want);
    if (size > 1e300L || size < 1e-290L) continue;
    const C got = a / b;
    EXPECT_LE(std::abs(Wide(got.re, got.im) - want), 4 * std::numeric_limits<double>::epsilon() * size)
        << a.re << " " << a.im << " / " << b.re << " " << b.im;
  }
  EXPECT_EQ(C(1e308, 1e308) / C(1e308, 1e308), C(1));
  EXPECT_EQ(C(1e-320, 0) / C(1e-320, 0), C(1));
  EXPECT_EQ((C(1, 0) / C(0)).re, kInf);
  EXPECT_TRUE(isnan(C(0) / C(0)));
  EXPECT_EQ(Complex<float>(1e38f, 1e38f) / Complex<float>(1e38f, 1e38f), Complex<float>(1));
}

template <class T>
void magnitudes_of_infinite_numbers() {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (const T other : {T(0), T(-3), inf, -inf, nan}) {
    EXPECT_EQ(magnitude(Complex<T>(inf, other)), inf) << other;
    EXPECT_EQ(magnitude(Complex<T>(other, -inf)), inf) << other;
  }
  EXPECT_TRUE(std::isnan(magnitude(Complex<T>(1, nan))));
}

TEST(Complex, AnInfinitePartMakesTheMagnitudeInfinite) {
  magnitudes_of_infinite_numbers<float>();
  magnitudes_of_infinite_numbers<double>();
}

TEST(Complex, FunctionsNearZeroAndAtTheEnds) {
  const C tiny(1e-12, 1e-13);
  EXPECT_NEAR(expm1(tiny).re, 1e-12, 1e-23);
  EXPECT_NEAR(log1p(tiny).re, 1e-12, 1e-23);
  EXPECT_NEAR(log1p(tiny).im, 1e-13, 1e-24);
  EXPECT_EQ(magnitude(C(3e300, 4e300)), 5e300);
  EXPECT_EQ(magnitude(Complex<float>(3e30f, 4e30f)), 5e30f);
  EXPECT_EQ(magnitude(C(-kInf, std::nan(""))), kInf);
  EXPECT_EQ(argument(C(-1, 0)), M_PI);
  EXPECT_EQ(argument(C(-1, -0.0)), -M_PI);
  EXPECT_EQ(sgn(C(0)), C(0));
  EXPECT_EQ(sgn(C(3, 4)), C(0.6, 0.8));
  EXPECT_EQ(pow(C(0), C(0)), C(1));
  EXPECT_EQ(pow(C(0), C(2, 1)), C(0));
  EXPECT_EQ(pow(C(1, 2), C(2)), C(-3, 4));
  EXPECT_EQ(sqrt(C(-4, 0)), C(0, 2));
  EXPECT_EQ(sqrt(C(-4, -0.0)), C(0, -2));
  EXPECT_TRUE(isinf(exp(C(1000, 1))));
}

}  // namespace
}  // namespace tercel
