#include "tercel/ops/special/special_math_impl.h"

#include <cmath>
#include <limits>
#include <utility>

namespace tercel::special {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kPi = 3.141592653589793, kSqrtPi = 1.7724538509055160, kSqrt2 = 1.4142135623730951;

/** The z > 0 with erfc(z) = y, for 0 < y < 1: Halley's method from an estimate with an error of a few percent. */
double erfc_inverse(double y) {
  const double log_y = std::log(y * (2 - y)), a = 0.147, b = 2 / (kPi * a) + log_y / 2;
  double z = std::sqrt(std::sqrt(b * b - log_y / a) - b);
  for (int step = 0; step < 4; ++step) {
    // If the difference and the derivative are both tiny, their quotient is not.
    const double error = (std::erfc(z) - y) / (-2 / kSqrtPi * std::exp(-z * z));
    const double change = error / (1 + z * error);
    z -= change;
    if (std::abs(change) <= kEpsilon * z) break;
  }
  return z;
}

// Series are summed until a term no longer changes the sum.
template <class Next>
double series(double first, Next next) {
  double sum = first, term = first;
  for (int k = 1; k < 10000; ++k) {
    term = next(term, k);
    sum += term;
    if (std::abs(term) <= std::abs(sum) * (kEpsilon / 8)) break;
  }
  return sum;
}

/** exp(-x) I_order(x) for x >= 0 and order 0 or 1. */
double bessel_scaled(int order, double x) {
  if (x < 25) {
    const double q = x * x / 4;
    const double sum =
        series(order == 0 ? 1.0 : x / 2, [&](double term, int k) { return term * q / (k * double(k + order)); });
    return std::exp(-x) * sum;
  }
  if (x == kInf) return 0;
  const double mu = 4.0 * order;
  double sum = 1, term = 1;
  for (int k = 1; k < 40; ++k) {
    const double odd = 2.0 * k - 1;
    term *= (odd * odd - mu) / (8 * x * k);
    sum += term;
    if (std::abs(term) <= kEpsilon / 8 * std::abs(sum)) break;
  }
  return sum / std::sqrt(2 * kPi * x);
}

double bessel(int order, double x) {
  if (x < 25) {
    const double q = x * x / 4;
    return series(order == 0 ? 1.0 : x / 2, [&](double term, int k) { return term * q / (k * double(k + order)); });
  }
  // In two factors, since exp(x) may overflow where the product does not.
  const double half = std::exp(x / 2);
  return half * bessel_scaled(order, x) * half;
}

/** log1p(u) - u without cancellation. */
double log1p_rest(double u) {
  if (std::abs(u) >= 0.1) return std::log1p(u) - u;
  double term = -u * u, sum = 0;
  for (int k = 2; k < 40; ++k, term *= -u) {
    sum += term / k;
    if (std::abs(term) < kEpsilon / 8 * std::abs(sum)) break;
  }
  return sum;
}

/** x^a exp(-x) / gamma(a + 1). */
double gamma_density(double a, double x) {
  if (a > 10) {
    // Stirling's formula.
    const double a2 = a * a;
    const double correction =
        (1.0 / 12 -
         (1.0 / 360 - (1.0 / 1260 - (1.0 / 1680 - (1.0 / 1188 - 691.0 / 360360 / a2) / a2) / a2) / a2) / a2) /
        a;
    return std::exp(a * log1p_rest((x - a) / a) - correction) / std::sqrt(2 * kPi * a);
  }
  return std::exp(a * std::log(x) - x - lgamma(a + 1));
}

double lower_series(double a, double x) {
  return gamma_density(a, x) * series(1.0, [&](double term, int k) { return term * x / (a + k); });
}

/** Continued fraction, evaluated forward (Lentz). */
double upper_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int k = 1; k < 10000; ++k) {
    const double factor = -k * (k - a);
    b += 2;
    d = factor * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + factor / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double change = d * c;
    h *= change;
    if (std::abs(change - 1) < kEpsilon) break;
  }
  return gamma_density(a, x) * a * h;
}

/** Above this, series and fraction need too many steps, and an expansion about the normal distribution is accurate. */
constexpr double kLargeA = 1e6;

/** Both functions for a large a, by Temme's uniform expansion: the error function and a term of order 1/sqrt(a). */
std::pair<double, double> incomplete_gamma_of_large(double a, double x) {
  const double half_square = -log1p_rest((x - a) / a);
  const double exponent = a * half_square;
  constexpr double kUnderflow = 745;
  if (exponent > kUnderflow) return x < a ? std::pair(0.0, 1.0) : std::pair(1.0, 0.0);
  const double eta = std::copysign(std::sqrt(2 * half_square), x - a);
  const double first =
      -1.0 / 3 + eta * (1.0 / 12 - eta * (2.0 / 135 - eta * (1.0 / 864 + eta * (1.0 / 2835 - eta * (139.0 / 777600)))));
  const double second = -1.0 / 540 - eta * (1.0 / 288 - eta * (1.0 / 378));
  const double rest = std::exp(-exponent) / std::sqrt(2 * kPi * a) * (first + second / a);
  const double tail = std::erfc(std::sqrt(exponent)) / 2;
  return x < a ? std::pair(tail - rest, 1 - (tail - rest)) : std::pair(1 - (tail + rest), tail + rest);
}

/** Lower and upper function. */
std::pair<double, double> incomplete_gamma(double a, double x) {
  if (!(a >= 0) || !(x >= 0)) return {kNan, kNan};
  if (a == 0) return x > 0 ? std::pair(1.0, 0.0) : std::pair(kNan, kNan);
  if (x == 0) return {0, 1};
  if (a == kInf) return x == kInf ? std::pair(kNan, kNan) : std::pair(0.0, 1.0);
  if (x == kInf) return {1, 0};
  if (a > kLargeA) return incomplete_gamma_of_large(a, x);
  if (x < a + 1) {
    const double lower = lower_series(a, x);
    return {lower, 1 - lower};
  }
  const double upper = upper_fraction(a, x);
  return {1 - upper, upper};
}

}  // namespace

double erfinv(double x) {
  const double size = std::abs(x);
  if (size == 1) return std::copysign(kInf, x);
  if (!(size < 1)) return kNan;
  if (size > 0.5) return std::copysign(erfc_inverse(1 - size), x);
  if (size < 1e-9) return x * (kSqrtPi / 2);
  double z = std::copysign(size < 0.1 ? size * (kSqrtPi / 2) : erfc_inverse(1 - size), x);
  for (int step = 0; step < 3; ++step) {
    const double error = (std::erf(z) - x) / (2 / kSqrtPi * std::exp(-z * z));
    z -= error / (1 + z * error);
  }
  return z;
}

double lgamma(double x) {
  // Not std::lgamma, which sets a global variable.
  int sign;
  return ::lgamma_r(x, &sign);
}

double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (x == kInf) return kInf;
  if (x < 0) {
    const double whole = std::nearbyint(x);
    if (whole == x) return kNan;
    // Uses the distance to the pole, which is exact, unlike the tangent of a number near pi.
    return digamma(1 - x) - kPi / std::tan(kPi * (x - whole));
  }
  // Upward recurrence until the asymptotic series is accurate.
  double below = 0;
  while (x < 10) {
    below += 1 / x;
    x += 1;
  }
  const double r = 1 / (x * x);
  const double tail =
      r *
      (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760 - r / 12))))));
  return std::log(x) - 0.5 / x - tail - below;
}

double zeta(double x, double q) {
  if (x == 1) return kInf;
  if (!(x > 1)) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (x != std::floor(x)) return kNan;
  }
  // Euler-Maclaurin: terms up to 10, then the integral, half a term and corrections.
  double sum = 0, at = q;
  for (int k = 0; k < 10 || at <= 10; at = q + ++k) {
    const double term = std::pow(at, -x);
    sum += term;
    if (term == 0 || std::abs(term) < kEpsilon / 16 * std::abs(sum)) {
      if (at > 0) return sum;
    }
  }
  const double last = std::pow(at, -x);
  sum += last * at / (x - 1) + last / 2;
  // Bernoulli numbers over factorials.
  constexpr double kTerms[] = {1.0 / 12,
                               -1.0 / 720,
                               1.0 / 30240,
                               -1.0 / 1209600,
                               1.0 / 47900160,
                               -691.0 / 1307674368000.0,
                               1.0 / 74724249600.0,
                               -3617.0 / 10670622842880000.0};
  double factor = x * last / at;
  for (int k = 0; k < 8; ++k) {
    const double term = kTerms[k] * factor;
    sum += term;
    if (std::abs(term) < kEpsilon / 16 * std::abs(sum)) break;
    factor *= (x + 2 * k + 1) * (x + 2 * k + 2) / (at * at);
  }
  return sum;
}

double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  const double value = std::tgamma(n + 1) * zeta(n + 1, x);
  return std::fmod(n, 2) == 0 ? -value : value;
}

double i0(double x) { return bessel(0, std::abs(x)); }
double i0e(double x) { return bessel_scaled(0, std::abs(x)); }
double i1(double x) { return std::copysign(bessel(1, std::abs(x)), x); }
double i1e(double x) { return std::copysign(bessel_scaled(1, std::abs(x)), x); }

double sinc(double x) {
  if (x == 0) return 1;
  // Sine of the argument modulo a full turn.
  const double rest = std::remainder(x, 2);
  const double angle = std::abs(rest) > 0.5 ? std::copysign(1 - std::abs(rest), rest) : rest;
  return std::sin(kPi * angle) / (kPi * x);
}

double ndtr(double x) {
  const double z = -x / kSqrt2;
  // Corrects for the rounding of z, to which a small erfc is sensitive.
  constexpr double kSqrt2Rest = -9.667293313452913e-17;
  const double lost = -(std::fma(z, kSqrt2, x) + z * kSqrt2Rest) / kSqrt2;
  const double value = std::erfc(z);
  return 0.5 * (z > 1 && value > 0 ? value - lost * (2 / kSqrtPi) * std::exp(-z * z) : value);
}

double ndtri(double p) {
  if (p == 0) return -kInf;
  if (p == 1) return kInf;
  if (!(p > 0 && p < 1)) return kNan;
  if (p > 0.25 && p < 0.75) return kSqrt2 * erfinv(2 * p - 1);
  return p < 0.5 ? -kSqrt2 * erfc_inverse(2 * p) : kSqrt2 * erfc_inverse(2 * (1 - p));
}

double log_ndtr(double x) {
  if (x > -1) return std::log1p(-0.5 * std::erfc(x / kSqrt2));
  if (x > -20) return std::log(ndtr(x));
  if (x == -kInf) return x;
  // Asymptotic series: density / -x * (1 - 1/x^2 + 3/x^4 - ...).
  const double r = 1 / (x * x);
  double sum = 1, term = 1;
  for (int k = 1; k < 12; ++k) {
    term *= -(2.0 * k - 1) * r;
    sum += term;
  }
  return -0.5 * x * x - std::log(-x) - 0.91893853320467274 + std::log(sum);
}

double entr(double x) { return x > 0 ? -x * std::log(x) : (x == 0 ? 0 : (x < 0 ? -kInf : x)); }

double xlogy(double x, double y) {
  if (y != y) return y;
  return x == 0 ? 0 : x * std::log(y);
}
double xlog1py(double x, double y) {
  if (y != y) return y;
  return x == 0 ? 0 : x * std::log1p(y);
}
double logaddexp2(double a, double b) {
  if (a == b) return a + 1;  // infinities too
  const double larger = a > b || a != a ? a : b;
  return larger + std::log1p(std::exp2(-std::abs(a - b))) * 1.4426950408889634;
}

double igamma(double a, double x) { return incomplete_gamma(a, x).first; }
double igammac(double a, double x) { return incomplete_gamma(a, x).second; }

}  // namespace tercel::special
