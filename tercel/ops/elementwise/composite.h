// Elementwise functions composed of other ops: division modes, tests, whole-tensor comparisons, bounds.
//
// Variants are as in unary.h and binary.h: name_ in place, name_out into a given tensor.
#pragma once

#include <optional>
#include <string_view>

#include "tercel/ops/elementwise/declare.h"

namespace tercel {

/** x - trunc(x). */
TERCEL_UNARY(frac)
/** sign(x); for complex numbers x / |x|, or 0 at 0. */
TERCEL_UNARY(sgn)
/** Degrees to radians, and radians to degrees. */
TERCEL_UNARY(deg2rad)
TERCEL_UNARY(rad2deg)
/** Returns x; NotImplementedError for bool. */
TERCEL_OP_API(method, python, layout_sparse) Tensor positive(const Tensor& x);
/** The angle of a complex number in (-pi, pi]; for real numbers pi or 0. */
TERCEL_OP_API(method, python, out_apart, layout_sparse) Tensor angle(const Tensor& x);
/** Replaces NaN and infinities; infinities become the dtype's largest and lowest number unless given. */
TERCEL_OP_API(method, out_apart, layout_sparse)
Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = {},
                  std::optional<double> neginf = {});
TERCEL_OP_API(method)
const Tensor& nan_to_num_(const Tensor& x, double nan = 0, std::optional<double> posinf = {},
                          std::optional<double> neginf = {});
/** log(x / (1 - x)); with eps, x is first clamped to [eps, 1 - eps]. */
TERCEL_OP_API(method, python, out_apart) Tensor logit(const Tensor& x, std::optional<double> eps = {});
TERCEL_OP_API(method, python) const Tensor& logit_(const Tensor& x, std::optional<double> eps = {});

/** Whether the sign bit is set, also for -0 and NaN. NotImplementedError for complex numbers. */
TERCEL_OP_API(method, out_apart, layout_sparse) Tensor signbit(const Tensor& x);
/** Whether x is infinite; for complex numbers, whether either part is. */
TERCEL_OP_API(method, python, layout_sparse) Tensor isinf(const Tensor& x);
TERCEL_OP_API(method, out_apart, layout_sparse) Tensor isposinf(const Tensor& x);
TERCEL_OP_API(method, out_apart, layout_sparse) Tensor isneginf(const Tensor& x);
/** Whether the imaginary part is 0. */
TERCEL_OP_API(method, python) Tensor isreal(const Tensor& x);

/** a / b, rounded towards zero ("trunc"), rounded down ("floor") or not rounded; RuntimeError for other modes. */
TERCEL_OP_API(method, out_apart)
Tensor div(const Tensor& a, const Tensor& b, std::optional<std::string_view> rounding_mode);
TERCEL_OP_API(method, out_apart) Tensor div(const Tensor& a, Scalar b, std::optional<std::string_view> rounding_mode);
TERCEL_OP_API(method)
const Tensor& div_(const Tensor& a, const Tensor& b, std::optional<std::string_view> rounding_mode);
TERCEL_OP_API(method) const Tensor& div_(const Tensor& a, Scalar b, std::optional<std::string_view> rounding_mode);
/** a / b. */
TERCEL_OP_API(method, out) Tensor true_divide(const Tensor& a, const Tensor& b);
TERCEL_OP_API(method, out) Tensor true_divide(const Tensor& a, Scalar b);
/** b - alpha * a. */
TERCEL_OP_API(out) Tensor rsub(const Tensor& a, const Tensor& b, Scalar alpha = 1);
TERCEL_OP_API(out) Tensor rsub(const Tensor& a, Scalar b, Scalar alpha = 1);
/** a * 2^b. */
TERCEL_OP_API(method, python, out_apart) Tensor ldexp(const Tensor& a, const Tensor& b);
TERCEL_OP_API(method, python) const Tensor& ldexp_(const Tensor& a, const Tensor& b);
/** a to the power b, in float64 or complex128. */
TERCEL_OP_API(method, out, layout_sparse) Tensor float_power(const Tensor& a, const Tensor& b);
TERCEL_OP_API(method, out, layout_sparse) Tensor float_power(const Tensor& a, Scalar b);
TERCEL_OP_API(python, out) Tensor float_power(Scalar input, const Tensor& exponent);
/** RuntimeError unless a has that dtype. */
TERCEL_OP_API(method) const Tensor& float_power_(const Tensor& a, const Tensor& b);
TERCEL_OP_API(method) const Tensor& float_power_(const Tensor& a, Scalar b);
/** x rounded to `decimals` digits after the decimal point (before it if negative), ties to even. */
TERCEL_OP_API(method, python, out_apart, keyword = decimals, layout_sparse)
Tensor round(const Tensor& x, int64_t decimals);
TERCEL_OP_API(method, python, keyword = decimals) const Tensor& round_(const Tensor& x, int64_t decimals);

/** mantissa * 2^exponent with |mantissa| in [0.5, 1); 0, infinities and NaN are their own mantissa. */
struct MantissaAndExponent {
  Tensor mantissa;
  Tensor exponent;  ///< int32
};
/** Splits floating-point numbers into mantissa and exponent. RuntimeError for other dtypes. */
TERCEL_OP_API(method, out_apart) MantissaAndExponent frexp(const Tensor& x);
/** Logarithm of the multivariate gamma function of dimension p, for x > (p - 1) / 2. RuntimeError if p < 1. */
TERCEL_OP_API(method, python, out) Tensor mvlgamma(const Tensor& x, int64_t p);
TERCEL_OP_API(method, python_method) const Tensor& mvlgamma_(const Tensor& x, int64_t p);

/** |a - b| <= atol + rtol * |b|, or equal infinities, or with equal_nan both NaN. RuntimeError if dtypes differ. */
TERCEL_OP_API(method, python)
Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
/** Whether isclose() is true everywhere. */
TERCEL_OP_API(method, python, layout_sparse)
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
/** Whether sizes and all elements are equal. */
TERCEL_OP_API(method, python, layout_sparse) bool equal(const Tensor& a, const Tensor& b);

/** Clamps x to the bounds, of which one may be absent (RuntimeError if both are); the upper bound wins. */
TERCEL_OP_API(method, out_apart)
Tensor clamp(const Tensor& x, const std::optional<Tensor>& min, const std::optional<Tensor>& max);
TERCEL_OP_API(method)
const Tensor& clamp_(const Tensor& x, const std::optional<Tensor>& min, const std::optional<Tensor>& max);
/** Alias of clamp(). */
TERCEL_OP_API(method, out_apart)
Tensor clip(const Tensor& x, const std::optional<Tensor>& min, const std::optional<Tensor>& max);
TERCEL_OP_API(method, out_apart) Tensor clip(const Tensor& x, Scalar min, Scalar max);
TERCEL_OP_API(method)
const Tensor& clip_(const Tensor& x, const std::optional<Tensor>& min, const std::optional<Tensor>& max);
TERCEL_OP_API(method) const Tensor& clip_(const Tensor& x, Scalar min, Scalar max);

/** Selects between two numbers by a bool tensor. */
TERCEL_OP_API(out) Tensor where(const Tensor& condition, Scalar a, Scalar b);
/** x with the value of a 0-dimensional tensor where the mask is true. */
TERCEL_OP_API(method, out) Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);
TERCEL_OP_API(method) const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, const Tensor& value);
/** a + weight * (b - a), written to a. */
TERCEL_OP_API(method) const Tensor& lerp_(const Tensor& a, const Tensor& b, const Tensor& weight);

// Comparisons and logical functions in place: 0 and 1 of a's dtype.
TERCEL_BINARY_INPLACE(eq)
TERCEL_BINARY_INPLACE(ne)
TERCEL_BINARY_INPLACE(lt)
TERCEL_BINARY_INPLACE(le)
TERCEL_BINARY_INPLACE(gt)
TERCEL_BINARY_INPLACE(ge)
TERCEL_BINARY_INPLACE(logical_and)
TERCEL_BINARY_INPLACE(logical_or)
TERCEL_BINARY_INPLACE(logical_xor)
TERCEL_OP_API(method, python_method) const Tensor& logical_not_(const Tensor& x);
TERCEL_OP_API(method, python_method) const Tensor& bitwise_not_(const Tensor& x);

}  // namespace tercel
