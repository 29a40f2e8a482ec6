// Special functions of real numbers, in double; for float, the result is rounded once.
#pragma once

#include <cmath>

#include "tercel/util/complex.h"

namespace tercel::special {

/** The inverse of the error function; infinite at -1 and 1, NaN outside. */
double erfinv(double x);
/** Logarithm of |gamma(x)|; infinite at 0 and negative integers. */
double lgamma(double x);
/** Derivative of lgamma; -infinity at 0 (infinity at -0), NaN at negative integers. */
double digamma(double x);
/** Hurwitz zeta function: the sum over k >= 0 of (k + q)^-x, for x > 1. */
double zeta(double x, double q);
/** The n-th derivative of digamma; n is a nonnegative integer. */
double polygamma(double n, double x);
/** Modified Bessel functions of the first kind, unscaled and scaled by exp(-|x|). */
double i0(double x);
double i0e(double x);
double i1(double x);
double i1e(double x);
/** sin(pi x) / (pi x); 1 at 0, NaN for infinities. */
double sinc(double x);
inline Complex<double> sinc(Complex<double> x) {
  const Complex<double> angle = x * 3.141592653589793;
  return x == Complex<double>(0) ? Complex<double>(1) : sin(angle) / angle;
}
/** The standard normal distribution function, its inverse and its logarithm. */
double ndtr(double x);
double ndtri(double p);
double log_ndtr(double x);
/** -x log x; 0 at 0, -infinity below. */
double entr(double x);
/** Bessel functions of the first and second kind, of order 0 and 1; the second kind requires x >= 0. */
double special_bessel_j0(double x);
double special_bessel_j1(double x);
double special_bessel_y0(double x);
double special_bessel_y1(double x);
/** Modified Bessel functions of the second kind, for x >= 0, unscaled and scaled by exp(x). */
double special_modified_bessel_k0(double x);
double special_modified_bessel_k1(double x);
double special_scaled_modified_bessel_k0(double x);
double special_scaled_modified_bessel_k1(double x);
/** sin(x) / x; 1 at 0. */
double special_spherical_bessel_j0(double x);
/** Airy function Ai. */
double special_airy_ai(double x);
/** exp(x^2) erfc(x). */
double special_erfcx(double x);
/** Regularised incomplete gamma functions, lower and upper, for a, x >= 0. */
double igamma(double a, double x);
double igammac(double a, double x);

// Orthogonal polynomials of degree n, truncated to an integer; 0 for a negative degree.
/** Chebyshev polynomials of the first to fourth kind. */
double special_chebyshev_polynomial_t(double x, double n);
double special_chebyshev_polynomial_u(double x, double n);
double special_chebyshev_polynomial_v(double x, double n);
double special_chebyshev_polynomial_w(double x, double n);
/** Hermite polynomials: physicists' and probabilists'. */
double special_hermite_polynomial_h(double x, double n);
double special_hermite_polynomial_he(double x, double n);
double special_laguerre_polynomial_l(double x, double n);
double special_legendre_polynomial_p(double x, double n);

/** x log y and x log(1 + y), 0 where x is 0; NaN where y is NaN. */
double xlogy(double x, double y);
double xlog1py(double x, double y);
/** log2(2^a + 2^b). */
double logaddexp2(double a, double b);

inline double log2(double x) { return std::log2(x); }
inline double log10(double x) { return std::log10(x); }
inline double exp2(double x) { return std::exp2(x); }
inline Complex<double> log2(Complex<double> x) { return log(x) * 1.4426950408889634; }
inline Complex<double> log10(Complex<double> x) { return log(x) * 0.4342944819032518; }
inline Complex<double> exp2(Complex<double> x) { return exp(x * 0.6931471805599453); }

// The functions that derivatives of functors use, for double; Complex and tensors define their own.
using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atanh, std::copysign, std::cos, std::cosh,
    std::erfc, std::exp, std::isnan, std::log, std::sin, std::sinh, std::sqrt, std::tan;
inline double where(bool condition, double a, double b) { return condition ? a : b; }
inline double sign(double x) { return x > 0 ? 1 : (x < 0 ? -1 : x); }
inline double special_log_ndtr(double x) { return log_ndtr(x); }
inline double special_zeta(double x, double q) { return zeta(x, q); }

}  // namespace tercel::special
