// Special functions by slow methods that are independent of the library's.
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <vector>

namespace tercel::test {

namespace reference {

/** x with f(x) = y, for an increasing f, between bounds. */
template <class F>
double inverse(F f, double y, double low, double high) {
  for (int step = 0; step < 200; ++step) {
    const double middle = low + (high - low) / 2;
    (f(middle) < y ? low : high) = middle;
  }
  return low;
}
inline double erfinv(double x) {
  return inverse([](double t) { return std::erf(t); }, x, -7, 7);
}
inline double normal(double x) {
  return static_cast<double>(std::erfc(-static_cast<long double>(x) / std::sqrt(2.0L)) / 2);
}
inline double ndtri(double p) { return inverse(normal, p, -9, 9); }
/** Upwards by the recurrence, far enough that three terms of the series are plenty. */
inline double digamma(double value) {
  long double x = value, sum = 0;
  for (; x < 1000; x += 1) sum -= 1 / x;
  return static_cast<double>(sum + std::log(x) - 1 / (2 * x) - 1 / (12 * x * x) + 1 / (120 * x * x * x * x));
}
/** The sum as far as 2000, and the integral of the rest with its first correction. */
inline double zeta(double x, double q) {
  long double sum = 0, s = x;
  int k = 0;
  for (; k < 2000; ++k) sum += std::pow(static_cast<long double>(q) + k, -s);
  const long double at = static_cast<long double>(q) + k;
  return static_cast<double>(sum + std::pow(at, 1 - s) / (s - 1) + std::pow(at, -s) / 2 +
                             s * std::pow(at, -s - 1) / 12);
}
/** (1 / pi) times the integral of exp(x cos t) cos(n t) from 0 to pi, for which the trapezoidal rule is exact. */
inline double bessel(int n, double x) {
  constexpr int kSteps = 200;
  long double sum = 0;
  for (int k = 0; k < kSteps; ++k) {
    const long double t = (k + 0.5L) * 3.14159265358979323846264338L / kSteps;
    sum += std::exp(x * std::cos(t)) * std::cos(n * t);
  }
  return static_cast<double>(sum / kSteps);
}
/** P(a, x) by its series. */
inline double igamma(double a, double x) {
  long double term = 1, sum = 1;
  for (int k = 1; k < 500; ++k) {
    term *= static_cast<long double>(x) / (a + k);
    sum += term;
  }
  return static_cast<double>(
      sum * std::exp(a * std::log(static_cast<long double>(x)) - x - std::lgamma(static_cast<long double>(a) + 1)));
}
/** (1 / pi) times the integral of cos(n t - x sin t) from 0 to pi. */
inline double bessel_j(int n, double x) {
  constexpr int kSteps = 200;
  long double sum = 0;
  for (int k = 0; k < kSteps; ++k) {
    const long double t = (k + 0.5L) * 3.14159265358979323846264338L / kSteps;
    sum += std::cos(n * t - x * std::sin(t));
  }
  return static_cast<double>(sum / kSteps);
}
/** The integral of exp(-x cosh t) cosh(order t) from 0 on, times exp(x) if it is to be scaled. */
inline double bessel_k(double order, double x, bool scaled = false) {
  constexpr int kSteps = 4000;
  long double sum = 0;
  for (int k = 0; k <= kSteps; ++k) {
    const long double t = 10.0L * k / kSteps;
    sum += std::exp(-x * (std::cosh(t) - (scaled ? 1 : 0))) * std::cosh(order * t) * (k == 0 ? 0.5L : 1.0L);
  }
  return static_cast<double>(sum * 10.0L / kSteps);
}
/** Airy's Ai by its power series, of numbers where that does not cancel for long double. */
inline double airy(double value) {
  const long double x = value;
  long double even = 1, odd = x, f = 1, g = x;
  for (int k = 1; k < 100; ++k) {
    even *= x * x * x / ((3.0L * k - 1) * (3.0L * k));
    odd *= x * x * x / ((3.0L * k) * (3.0L * k + 1));
    f += even;
    g += odd;
  }
  return static_cast<double>(0.355028053887817239260L * f - 0.258819403792806798405L * g);
}
inline double erfcx(double x) {
  const long double t = x;
  return static_cast<double>(std::exp(t * t) * std::erfc(t));
}
/** The polynomial of degree n with the recurrence p_k+1 = (a_k + b_k x) p_k - c_k p_k-1, at x. */
template <class Rule>
double polynomial(double x, double n, std::vector<long double> first, Rule rule) {
  const int degree = static_cast<int>(n);
  if (degree < 0) return 0;
  std::vector<std::vector<long double>> p = {{1}, std::move(first)};
  for (int k = 1; k < degree; ++k) {
    const std::array<long double, 3> abc = rule(k);
    std::vector<long double> next(static_cast<size_t>(k) + 2);
    for (size_t i = 0; i < p[static_cast<size_t>(k)].size(); ++i) {
      next[i] += abc[0] * p[static_cast<size_t>(k)][i];
      next[i + 1] += abc[1] * p[static_cast<size_t>(k)][i];
    }
    for (size_t i = 0; i < p[static_cast<size_t>(k) - 1].size(); ++i)
      next[i] -= abc[2] * p[static_cast<size_t>(k) - 1][i];
    p.push_back(std::move(next));
  }
  long double sum = 0, power = 1;
  for (const long double c : p[static_cast<size_t>(degree)]) {
    sum += c * power;
    power *= x;
  }
  return static_cast<double>(sum);
}
using Rule = std::array<long double, 3>;
inline double chebyshev(double x, double n, std::vector<long double> first) {
  return polynomial(x, n, std::move(first), [](int) { return Rule{0, 2, 1}; });
}
inline double hermite_h(double x, double n) {
  return polynomial(x, n, {0, 2}, [](int k) { return Rule{0, 2, 2.0L * k}; });
}
inline double hermite_he(double x, double n) {
  return polynomial(x, n, {0, 1}, [](int k) { return Rule{0, 1, 1.0L * k}; });
}
inline double laguerre(double x, double n) {
  return polynomial(x, n, {1, -1}, [](int k) {
    return Rule{(2.0L * k + 1) / (k + 1), -1.0L / (k + 1), k / (k + 1.0L)};
  });
}
inline double legendre(double x, double n) {
  return polynomial(x, n, {0, 1}, [](int k) { return Rule{0, (2.0L * k + 1) / (k + 1), k / (k + 1.0L)}; });
}
inline double sinc(double x) { return x == 0 ? 1 : std::sin(M_PI * x) / (M_PI * x); }
inline std::complex<double> sinc(std::complex<double> x) { return std::sin(M_PI * x) / (M_PI * x); }
inline double shift(double a, double b, bool left) {
  const auto x = static_cast<int64_t>(a), n = static_cast<int64_t>(b);
  return static_cast<double>(left ? x * (int64_t{1} << n) : x >> n);
}

}  // namespace reference

}  // namespace tercel::test
