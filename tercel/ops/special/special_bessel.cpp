// Bessel functions of real numbers, and functions derived from them; see special_math_impl.h.
#include <math.h>

#include <cmath>
#include <limits>

#include "tercel/ops/special/special_math_impl.h"

namespace tercel::special {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kPi = 3.141592653589793, kEulerGamma = 0.5772156649015329;
/** Above this, the continued fraction of K converges quickly. */
constexpr double kSeriesEnd = 2;

struct TwoOrders {
  double lower, upper;  // of order nu and nu + 1
};

/** exp(x) K_nu(x) and exp(x) K_nu+1(x) for x >= 2 and |nu| <= 1/2: Temme's sums along Steed's continued
 * fraction. */
TwoOrders scaled_k(double nu, double x) {
  const double first = 0.25 - nu * nu;
  double a = -first, b = 2 * (1 + x), d = 1 / b, step = d, fraction = d;
  double q_before = 0, q = 1, weight = first, weights = first, sum = 1 + weights * step;
  for (int i = 2; i < 10000; ++i) {
    a -= 2 * (i - 1);
    weight = -a * weight / i;
    const double q_next = (q_before - b * q) / a;
    q_before = q;
    q = q_next;
    weights += weight * q_next;
    b += 2;
    d = 1 / (b + a * d);
    step = (b * d - 1) * step;
    fraction += step;
    const double more = weights * step;
    sum += more;
    if (std::abs(more) <= kEpsilon / 8 * std::abs(sum)) break;
  }
  const double lower = std::sqrt(kPi / (2 * x)) / sum;
  return {lower, lower * (nu + x + 0.5 - first * fraction) / x};
}

/** K_0 and K_1 for 0 < x < 2. */
TwoOrders k_of_small(double x) {
  const double q = x * x / 4;
  double term = 1, harmonic = 0, sum = 0;
  for (int k = 1; k < 40; ++k) {
    term *= q / (double(k) * k);
    harmonic += 1.0 / k;
    sum += term * harmonic;
  }
  const double zeroth = sum - (std::log(x / 2) + kEulerGamma) * i0(x);
  return {zeroth, (1 / x - i1(x) * zeroth) / i0(x)};  // by the Wronskian
}

/** K of an order, with or without the factor exp(x). */
double bessel_k(int order, double x, bool scaled) {
  if (!(x > 0)) return x == 0 ? kInf : kNan;
  if (x == kInf) return 0;
  const bool small = x < kSeriesEnd;
  const TwoOrders both = small ? k_of_small(x) : scaled_k(0, x);
  const double value = order == 0 ? both.lower : both.upper;
  return small == scaled ? value * std::exp(small ? x : -x) : value;
}

/** Ai(x) by its power series, for small x: for larger x its two parts cancel. */
double airy_series(double x) {
  const long double cube = static_cast<long double>(x) * x * x;
  long double even = 1, odd = x, even_sum = 1, odd_sum = x;
  for (int k = 1; k < 60; ++k) {
    even *= cube / ((3.0L * k - 1) * (3.0L * k));
    odd *= cube / ((3.0L * k) * (3.0L * k + 1));
    even_sum += even;
    odd_sum += odd;
  }
  return static_cast<double>(0.355028053887817239260L * even_sum - 0.258819403792806798405L * odd_sum);
}

}  // namespace

// NaN for infinities, as in PyTorch and SciPy.
double special_bessel_j0(double x) { return std::isinf(x) ? kNan : ::j0(x); }
double special_bessel_j1(double x) { return std::isinf(x) ? kNan : ::j1(x); }
double special_bessel_y0(double x) { return x < 0 || x == kInf ? kNan : (x == 0 ? -kInf : ::y0(x)); }
double special_bessel_y1(double x) { return x < 0 || x == kInf ? kNan : (x == 0 ? -kInf : ::y1(x)); }
double special_modified_bessel_k0(double x) { return bessel_k(0, x, false); }
double special_modified_bessel_k1(double x) { return bessel_k(1, x, false); }
double special_scaled_modified_bessel_k0(double x) { return bessel_k(0, x, true); }
double special_scaled_modified_bessel_k1(double x) { return bessel_k(1, x, true); }

double special_spherical_bessel_j0(double x) {
  if (std::isinf(x)) return 0;
  return x == 0 ? 1 : std::sin(x) / x;
}

double special_airy_ai(double x) {
  if (!std::isfinite(x)) return kNan;
  constexpr double kUnderflow = 110;
  if (x > kUnderflow) return 0;
  if (std::abs(x) < 2.1) return airy_series(x);
  const double size = std::abs(x), zeta = 2.0 / 3 * size * std::sqrt(size);
  if (x > 0) return std::sqrt(size / 3) / kPi * scaled_k(1.0 / 3, zeta).lower * std::exp(-zeta);
  return std::sqrt(size) / 2 * (std::cyl_bessel_j(1.0 / 3, zeta) - std::cyl_neumann(1.0 / 3, zeta) / std::sqrt(3.0));
}

double special_erfcx(double x) {
  if (x >= 25) {
    const double inverse = 1 / (2 * x * x);
    return (1 - inverse * (1 - 3 * inverse * (1 - 5 * inverse * (1 - 7 * inverse)))) / (x * std::sqrt(kPi));
  }
  if (x < -26.7) return kInf;
  // Rounding the square before exp() would lose too many digits.
  const double square = x * x, rest = std::fma(x, x, -square);
  return std::exp(square) * (1 + rest) * std::erfc(x);
}

}  // namespace tercel::special
