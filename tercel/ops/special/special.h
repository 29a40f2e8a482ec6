// Special functions, and elementwise ops that are rarely performance-critical.
//
// Each name has the variants of unary.h or binary.h: a new result (either of two operands may be a number), name_ in
// place, name_out into a given tensor. Dtypes are treated as there: functions of real numbers convert integers and bool
// to float32. Results are accurate to a few units in the last place; most float32 results are calculated in float64.
#pragma once

#include "tercel/ops/elementwise/declare.h"

namespace tercel {

/** Tangent of x radians. Supports complex numbers, like all functions down to exp2. */
TERCEL_UNARY(tan)
/** Arc sine, in [-pi/2, pi/2]; NaN outside [-1, 1]. */
TERCEL_UNARY(asin)
/** Arc cosine, in [0, pi]; NaN outside [-1, 1]. */
TERCEL_UNARY(acos)
/** Arc tangent, in [-pi/2, pi/2]. */
TERCEL_UNARY(atan)
/** Hyperbolic sine. */
TERCEL_UNARY(sinh)
/** Hyperbolic cosine. */
TERCEL_UNARY(cosh)
/** Inverse of sinh. */
TERCEL_UNARY(asinh)
/** Inverse of cosh; NaN below 1. */
TERCEL_UNARY(acosh)
/** Inverse of tanh; infinite at -1 and 1, NaN outside. */
TERCEL_UNARY(atanh)
/** Base 2 logarithm. */
TERCEL_UNARY(log2)
/** Base 10 logarithm. */
TERCEL_UNARY(log10)
/** 2 to the power x. */
TERCEL_UNARY(exp2)
/** 1 - erf(x), accurate also where it is small. */
TERCEL_UNARY(erfc)
/** Inverse of erf; infinite at -1 and 1, NaN outside. */
TERCEL_UNARY(erfinv)
/** log |gamma(x)|; infinite at 0 and negative integers. */
TERCEL_UNARY(lgamma)
/** Derivative of lgamma; -infinity at 0, NaN at negative integers. */
TERCEL_UNARY(digamma)
/** Modified Bessel functions of the first kind, of order 0 and 1; those with an e are multiplied by exp(-|x|). */
TERCEL_UNARY(i0)
TERCEL_UNARY_FUNCTION(i0e)
TERCEL_UNARY_FUNCTION(i1)
TERCEL_UNARY_FUNCTION(i1e)
/** sin(pi x) / (pi x); 1 at 0. */
TERCEL_UNARY(sinc)
/** The standard normal distribution function, its inverse and its logarithm. */
TERCEL_UNARY_FUNCTION(special_ndtr)
TERCEL_UNARY_FUNCTION(special_ndtri)
TERCEL_UNARY_FUNCTION(special_log_ndtr)
/** -x log x; 0 at 0, -infinity below. */
TERCEL_UNARY_FUNCTION(special_entr)
/** Bessel functions of the first and second kind, of order 0 and 1; those of the second kind are NaN below 0. */
TERCEL_UNARY_FUNCTION(special_bessel_j0)
TERCEL_UNARY_FUNCTION(special_bessel_j1)
TERCEL_UNARY_FUNCTION(special_bessel_y0)
TERCEL_UNARY_FUNCTION(special_bessel_y1)
/** Modified Bessel functions of the second kind, of order 0 and 1; NaN below 0; scaled: multiplied by exp(x). */
TERCEL_UNARY_FUNCTION(special_modified_bessel_k0)
TERCEL_UNARY_FUNCTION(special_modified_bessel_k1)
TERCEL_UNARY_FUNCTION(special_scaled_modified_bessel_k0)
TERCEL_UNARY_FUNCTION(special_scaled_modified_bessel_k1)
/** sin(x) / x; 1 at 0. */
TERCEL_UNARY_FUNCTION(special_spherical_bessel_j0)
/** Airy function Ai. Not differentiable (NotImplementedError). */
TERCEL_UNARY_FUNCTION(special_airy_ai)
/** exp(x^2) erfc(x), without overflow for large x. */
TERCEL_UNARY_FUNCTION(special_erfcx)

/** The n-th derivative of digamma. RuntimeError for a negative n. */
TERCEL_OP_API(method, python) Tensor polygamma(int64_t n, const Tensor& x);
TERCEL_OP_API(method, python_method) const Tensor& polygamma_(const Tensor& x, int64_t n);
TERCEL_API const Tensor& polygamma_out(const Tensor& out, int64_t n, const Tensor& x);

/** Regularised incomplete gamma functions P(a, x) and Q(a, x), for a, x >= 0. Not differentiable in a. */
TERCEL_BINARY(igamma)
TERCEL_BINARY(igammac)
/** Hurwitz zeta function: the sum over k >= 0 of (k + b)^-a, for a > 1. Not differentiable in a. */
TERCEL_BINARY_FUNCTION(special_zeta)
/** log2(2^a + 2^b) without intermediate overflow. */
TERCEL_BINARY_METHOD(logaddexp2)
/** |a| with the sign of b. */
TERCEL_BINARY(copysign)
/** a log b; 0 where a is 0, unless b is NaN. */
TERCEL_BINARY(xlogy)
/** a log(1 + b); 0 where a is 0, unless b is NaN. */
TERCEL_BINARY_FUNCTION(special_xlog1py)
/** Elementwise maximum that ignores NaN; NaN only if both operands are. */
TERCEL_BINARY_METHOD(fmax)
/** Elementwise minimum that ignores NaN; NaN only if both operands are. */
TERCEL_BINARY_METHOD(fmin)
/** 0 where a is negative, 1 where it is positive, b where it is 0. */
TERCEL_BINARY(heaviside)
/** The next floating-point number after a in the direction of b. */
TERCEL_BINARY(nextafter)
/** Greatest common divisor; not negative, and 0 for two zeros. Integers only, like the next function. */
TERCEL_BINARY(gcd)
/** Least common multiple; not negative unless it wraps. */
TERCEL_BINARY(lcm)
/** a * 2^b of integers; 0 for a shift that is negative or not less than the width. */
TERCEL_BINARY(bitwise_left_shift)
/** a / 2^b of integers, rounded down; a shift that is out of range leaves only the sign. */
TERCEL_BINARY(bitwise_right_shift)

/** Chebyshev polynomials of the first (T) to fourth kind (W), of degree n, at x; shifted: at 2x - 1. */
TERCEL_BINARY_FUNCTION(special_chebyshev_polynomial_t)
TERCEL_BINARY_FUNCTION(special_chebyshev_polynomial_u)
TERCEL_BINARY_FUNCTION(special_chebyshev_polynomial_v)
TERCEL_BINARY_FUNCTION(special_chebyshev_polynomial_w)
TERCEL_BINARY_FUNCTION(special_shifted_chebyshev_polynomial_t)
TERCEL_BINARY_FUNCTION(special_shifted_chebyshev_polynomial_u)
TERCEL_BINARY_FUNCTION(special_shifted_chebyshev_polynomial_v)
TERCEL_BINARY_FUNCTION(special_shifted_chebyshev_polynomial_w)
/** Hermite polynomials: physicists' (H) and probabilists' (He). */
TERCEL_BINARY_FUNCTION(special_hermite_polynomial_h)
TERCEL_BINARY_FUNCTION(special_hermite_polynomial_he)
/** Laguerre polynomials. */
TERCEL_BINARY_FUNCTION(special_laguerre_polynomial_l)
/** Legendre polynomials. */
TERCEL_BINARY_FUNCTION(special_legendre_polynomial_p)

}  // namespace tercel
