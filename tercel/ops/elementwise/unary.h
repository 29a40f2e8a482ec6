// Elementwise functions of one tensor.
//
// Each name has these variants:
//   Tensor name(const Tensor& x)                                a new tensor,
//   const Tensor& name_(const Tensor& x)                        in place,
//   const Tensor& name_out(const Tensor& out, const Tensor& x)  into `out`: Note [Out variants] in out.h.
// A new result is dense and keeps x's dimension order in memory. Functions of real numbers convert integers and bool to
// float32. In-place variants raise RuntimeError if x's dtype cannot hold the result, and if x's elements overlap.
// isnan, isfinite and logical_not return bool and have no in-place variant here.
#pragma once

#include "tercel/ops/elementwise/declare.h"

namespace tercel {

/** |x|; the gradient at 0 is 0. */
TERCEL_UNARY(abs)
/** -x; not supported for bool. */
TERCEL_UNARY(neg)
/** e to the power x. */
TERCEL_UNARY(exp)
/** exp(x) - 1, accurate near 0. */
TERCEL_UNARY(expm1)
/** Natural logarithm. */
TERCEL_UNARY(log)
/** log(1 + x), accurate near 0. */
TERCEL_UNARY(log1p)
/** Square root. */
TERCEL_UNARY(sqrt)
/** 1 / sqrt(x). */
TERCEL_UNARY(rsqrt)
/** 1 / x. */
TERCEL_UNARY(reciprocal)
/** x * x; integers wrap. */
TERCEL_UNARY(square)
/** Sine of x radians. */
TERCEL_UNARY(sin)
/** Cosine of x radians. */
TERCEL_UNARY(cos)
/** Hyperbolic tangent. */
TERCEL_UNARY(tanh)
/** 1 / (1 + exp(-x)). */
TERCEL_UNARY(sigmoid)
/** max(x, 0); the gradient at 0 is 0. */
TERCEL_UNARY(relu)
/** Error function. */
TERCEL_UNARY(erf)
/** x times the standard normal distribution function at x. */
TERCEL_UNARY_FUNCTION(gelu)
/** x * sigmoid(x). */
TERCEL_UNARY_FUNCTION(silu)
/** x / (1 + |x|). */
TERCEL_UNARY_FUNCTION(softsign)
/** Sign of x: -1, 0 or 1; NaN is kept. */
TERCEL_UNARY(sign)
/** Largest integer not above x. */
TERCEL_UNARY(floor)
/** Smallest integer not below x. */
TERCEL_UNARY(ceil)
/** Nearest integer, ties to even. */
TERCEL_UNARY(round)
/** x rounded towards zero. */
TERCEL_UNARY(trunc)

/** Whether x is NaN. */
TERCEL_UNARY_PREDICATE(isnan)
/** Whether x is neither infinite nor NaN. */
TERCEL_UNARY_PREDICATE(isfinite)
/** Whether x is zero. */
TERCEL_UNARY_PREDICATE(logical_not)

/** x where positive, else negative_slope * x. */
TERCEL_OP_API(out) Tensor leaky_relu(const Tensor& x, Scalar negative_slope = 0.01);
TERCEL_API const Tensor& leaky_relu_(const Tensor& x, Scalar negative_slope = 0.01);
/** log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds the threshold. */
TERCEL_OP_API(python_nn, out) Tensor softplus(const Tensor& x, Scalar beta = 1, Scalar threshold = 20);
/** min(max(x, low), high); NaN is kept. The gradient passes where low < x < high, and is 0 elsewhere. */
TERCEL_OP_API(method, out_apart) Tensor clamp(const Tensor& x, Scalar low, Scalar high);
TERCEL_OP_API(method) const Tensor& clamp_(const Tensor& x, Scalar low, Scalar high);
/** max(x, low). */
TERCEL_OP_API(method, out_apart) Tensor clamp_min(const Tensor& x, Scalar low);
TERCEL_OP_API(method) const Tensor& clamp_min_(const Tensor& x, Scalar low);
/** min(x, high). */
TERCEL_OP_API(method, out_apart) Tensor clamp_max(const Tensor& x, Scalar high);
TERCEL_OP_API(method) const Tensor& clamp_max_(const Tensor& x, Scalar high);
/** Bitwise not; logical not for bool. Integers and bool only. */
TERCEL_OP_API(method, python, out_apart) Tensor bitwise_not(const Tensor& x);

inline Tensor operator-(const Tensor& x) { return neg(x); }

}  // namespace tercel
