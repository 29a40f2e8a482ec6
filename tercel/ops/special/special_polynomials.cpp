// Orthogonal polynomials by their recurrences; see special_math_impl.h.
#include <cmath>
#include <limits>

#include "tercel/ops/special/special_math_impl.h"

namespace tercel::special {

namespace {

/** Above this degree Chebyshev polynomials use cosines, whose cost does not depend on the degree. */
constexpr double kLongRecurrence = 64;

/**
 * The polynomial of degree n >= 0 with p_0 = 1 and p_k+1 = next(p_k, p_k-1, k). Stops at infinity, since the next
 * difference would be NaN.
 */
template <class Next>
double by_recurrence(double n, double first, Next next) {
  if (n <= -1) return 0;
  if (!std::isfinite(n)) return std::numeric_limits<double>::quiet_NaN();
  const double degree = std::trunc(n);  // also for -0.5, which is degree 0
  if (degree == 0) return 1;
  double before = 1, p = first;
  for (double k = 1; k < degree && std::isfinite(p); ++k) {
    const double after = next(p, before, k);
    before = p;
    p = after;
  }
  return p;
}

/** Chebyshev polynomial of any kind; the kinds differ in degree 1. */
double chebyshev(double x, double n, double first) {
  return by_recurrence(n, first, [x](double p, double before, double) { return 2 * x * p - before; });
}

bool is_long(double n) { return n > kLongRecurrence && std::isfinite(n); }
/** The sign of x to the power n. */
double sign_of_power(double x, double n) { return x < 0 && std::fmod(std::trunc(n), 2) != 0 ? -1 : 1; }

}  // namespace

double special_chebyshev_polynomial_t(double x, double n) {
  if (!is_long(n)) return chebyshev(x, n, x);
  const double degree = std::trunc(n);
  if (std::abs(x) <= 1) return std::cos(degree * std::acos(x));
  return sign_of_power(x, degree) * std::cosh(degree * std::acosh(std::abs(x)));
}

double special_chebyshev_polynomial_u(double x, double n) {
  if (!is_long(n)) return chebyshev(x, n, 2 * x);
  const double degree = std::trunc(n), sign = sign_of_power(x, degree);
  if (std::abs(x) == 1) return sign * (degree + 1);
  if (std::abs(x) < 1) return std::sin((degree + 1) * std::acos(x)) / std::sqrt((1 - x) * (1 + x));
  const double angle = std::acosh(std::abs(x));
  return sign * std::sinh((degree + 1) * angle) / std::sinh(angle);
}

double special_chebyshev_polynomial_v(double x, double n) {
  if (!is_long(n)) return chebyshev(x, n, 2 * x - 1);
  const double degree = std::trunc(n);
  if (std::abs(x) >= 1) {
    const double second = special_chebyshev_polynomial_u(x, degree);
    return std::isinf(second) ? second : second - special_chebyshev_polynomial_u(x, degree - 1);
  }
  const double angle = std::acos(x);
  return std::cos((degree + 0.5) * angle) / std::cos(angle / 2);
}

double special_chebyshev_polynomial_w(double x, double n) {
  if (!is_long(n)) return chebyshev(x, n, 2 * x + 1);
  return sign_of_power(-1, n) * special_chebyshev_polynomial_v(-x, n);
}

double special_hermite_polynomial_h(double x, double n) {
  return by_recurrence(n, 2 * x, [x](double p, double before, double k) { return 2 * (x * p - k * before); });
}

double special_hermite_polynomial_he(double x, double n) {
  return by_recurrence(n, x, [x](double p, double before, double k) { return x * p - k * before; });
}

double special_laguerre_polynomial_l(double x, double n) {
  return by_recurrence(n, 1 - x,
                       [x](double p, double before, double k) { return ((2 * k + 1 - x) * p - k * before) / (k + 1); });
}

double special_legendre_polynomial_p(double x, double n) {
  return by_recurrence(n, x,
                       [x](double p, double before, double k) { return ((2 * k + 1) * x * p - k * before) / (k + 1); });
}

}  // namespace tercel::special
