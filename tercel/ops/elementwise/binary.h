// Elementwise functions of two tensors, or of a tensor and a number: arithmetic, bitwise, comparison, logical.
//
// Each name has these variants:
//   Tensor name(a, b)                    a new tensor; a or b may be a number,
//   const Tensor& name_(a, b)            in place, into a,
//   const Tensor& name_out(out, a, b)    into `out`: Note [Out variants] in out.h.
// Shapes are broadcast, dtypes promoted (docs/design/ops.md): a number changes the dtype only if its category is
// higher. Integer arithmetic wraps. A new result keeps the operands' dimension order in memory. In-place and out
// variants raise RuntimeError if the dtype cannot hold the result, and if memory overlaps partially.
#pragma once

#include "tercel/ops/elementwise/declare.h"

namespace tercel {

/** a + b; logical or for bool. */
TERCEL_BINARY(add)
/** a - b; not supported for bool. */
TERCEL_BINARY(sub)
/** a * b; logical and for bool. */
TERCEL_BINARY(mul)
/** a / b; integers are divided in float32. */
TERCEL_BINARY(div)
/** a to the power b. For integers, fractions become 0, and a negative number as b is a RuntimeError. */
TERCEL_BINARY(pow)
/** Elementwise maximum; NaN if either operand is. Equal operands share the gradient. */
TERCEL_BINARY_METHOD(maximum)
/** Elementwise minimum; NaN if either operand is. Equal operands share the gradient. */
TERCEL_BINARY_METHOD(minimum)
/** Angle of the point (b, a), in (-pi, pi]. */
TERCEL_BINARY(atan2)
/** sqrt(a * a + b * b) without intermediate overflow. */
TERCEL_BINARY(hypot)
/** log(exp(a) + exp(b)) without intermediate overflow. */
TERCEL_BINARY_METHOD(logaddexp)
/** Remainder of truncating division, with the sign of a. For integers, RuntimeError if b contains a zero. */
TERCEL_BINARY(fmod)
/** Remainder of floor division, with the sign of b. For integers, RuntimeError if b contains a zero. */
TERCEL_BINARY(remainder)
/** floor(a / b). For integers, RuntimeError if b contains a zero. */
TERCEL_BINARY(floor_divide)
/** Bitwise and. Integers and bool only, like the next two. */
TERCEL_BINARY(bitwise_and)
/** Bitwise or. */
TERCEL_BINARY(bitwise_or)
/** Bitwise exclusive or. */
TERCEL_BINARY(bitwise_xor)

// Comparisons and logical functions return bool. Integer tensors are compared with any integer exactly.
/** a == b. */
TERCEL_BINARY_RESULT(eq)
/** a != b. */
TERCEL_BINARY_RESULT(ne)
/** a < b. */
TERCEL_BINARY_RESULT(lt)
/** a <= b. */
TERCEL_BINARY_RESULT(le)
/** a > b. */
TERCEL_BINARY_RESULT(gt)
/** a >= b. */
TERCEL_BINARY_RESULT(ge)
/** Whether both are nonzero. */
TERCEL_BINARY_RESULT(logical_and)
/** Whether at least one is nonzero. */
TERCEL_BINARY_RESULT(logical_or)
/** Whether exactly one is nonzero. */
TERCEL_BINARY_RESULT(logical_xor)

/** a + alpha * b, in one pass. */
TERCEL_OP_API(method, out) Tensor add(const Tensor& a, const Tensor& b, Scalar alpha);
TERCEL_OP_API(method) const Tensor& add_(const Tensor& a, const Tensor& b, Scalar alpha);
/** a - alpha * b, in one pass. */
TERCEL_OP_API(method, out) Tensor sub(const Tensor& a, const Tensor& b, Scalar alpha);
TERCEL_OP_API(method) const Tensor& sub_(const Tensor& a, const Tensor& b, Scalar alpha);

#define TERCEL_OPERATOR(symbol, name)                                                    \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return name(a, b); } \
  inline Tensor operator symbol(const Tensor& a, Scalar b) { return name(a, b); }        \
  inline Tensor operator symbol(Scalar a, const Tensor& b) { return name(a, b); }
TERCEL_OPERATOR(+, add)
TERCEL_OPERATOR(-, sub)
TERCEL_OPERATOR(*, mul)
TERCEL_OPERATOR(/, div)
TERCEL_OPERATOR(==, eq)
TERCEL_OPERATOR(!=, ne)
TERCEL_OPERATOR(<, lt)
TERCEL_OPERATOR(<=, le)
TERCEL_OPERATOR(>, gt)
TERCEL_OPERATOR(>=, ge)
#undef TERCEL_OPERATOR

#define TERCEL_OPERATOR_INPLACE(symbol, name)                                                   \
  inline const Tensor& operator symbol(const Tensor& a, const Tensor& b) { return name(a, b); } \
  inline const Tensor& operator symbol(const Tensor& a, Scalar b) { return name(a, b); }
TERCEL_OPERATOR_INPLACE(+=, add_)
TERCEL_OPERATOR_INPLACE(-=, sub_)
TERCEL_OPERATOR_INPLACE(*=, mul_)
TERCEL_OPERATOR_INPLACE(/=, div_)
#undef TERCEL_OPERATOR_INPLACE

}  // namespace tercel
