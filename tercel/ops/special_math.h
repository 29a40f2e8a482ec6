// Special functions of real numbers, in double; float is calculated in it and rounded once.
#pragma once

#include <cmath>

#include "tercel/util/complex.h"

namespace tercel::special {

/** The inverse of the error function; infinite at -1 and 1, NaN beyond. */
double erfinv(double x);
/** Logarithm of |gamma(x)|; infinite at whole numbers from 0 downwards. */
double lgamma(double x);
/** Derivative of lgamma; -infinity at 0 (infinity at -0), NaN at negative whole numbers. */
double digamma(double x);
/** Hurwitz's zeta function: the sum over k >= 0 of (k + q)^-x, for x > 1. */
double zeta(double x, double q);
/** The n-th derivative of digamma; n is a whole number, not negative. */
double polygamma(double n, double x);
/** Modified Bessel functions of the first kind, and the same times exp(-|x|). */
double i0(double x);
double i0e(double x);
double i1(double x);
double i1e(double x);
/** sin(pi x) / (pi x); 1 at 0. */
double sinc(double x);
/** The normal distribution function, its inverse and its logarithm. */
double ndtr(double x);
double ndtri(double p);
double log_ndtr(double x);
/** -x log x; 0 at 0, -infinity below. */
double entr(double x);
/** Regularised incomplete gamma functions, lower and upper, for a, x >= 0. */
double igamma(double a, double x);
double igammac(double a, double x);

/** x log y and x log(1 + y), 0 where x is; NaN where y is. */
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

// What derivatives of the functors are made of, for double; Complex and tensors bring their own.
using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atanh, std::copysign, std::cos, std::cosh,
    std::erfc, std::exp, std::isnan, std::log, std::sin, std::sinh, std::sqrt, std::tan;
inline double where(bool condition, double a, double b) { return condition ? a : b; }
inline double sign(double x) { return x > 0 ? 1 : (x < 0 ? -1 : x); }
inline double special_log_ndtr(double x) { return log_ndtr(x); }
inline double special_zeta(double x, double q) { return zeta(x, q); }

}  // namespace tercel::special
