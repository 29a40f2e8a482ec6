// Elementwise functions of two tensors, or of a tensor and a number: arithmetic, bits, comparison, logic.
//
// For each name there are, with the same meaning,
//   Tensor name(a, b)                    a fresh tensor; a or b may be a number,
//   const Tensor& name_(a, b)            into a,
//   const Tensor& name_out(out, a, b)    into `out`: Note [Out variants] in out.h.
// Shapes are broadcast, dtypes promoted (docs/design/ops.md): a number changes the dtype only if it is of a higher
// category, and integers wrap. A fresh result keeps the order of dimensions in memory of its operands. In-place and out
// variants are a RuntimeError where the dtype cannot hold the result, and where memory overlaps in part.
#pragma once

#include "tercel/ops/elementwise/declare.h"

namespace tercel {

/** a + b; of bools: or. */
TERCEL_BINARY(add)
/** a - b; not for bool. */
TERCEL_BINARY(sub)
/** a * b; of bools: and. */
TERCEL_BINARY(mul)
/** a / b, of integers in float32. */
TERCEL_BINARY(div)
/** a to the power b. Of integers a whole number: 0 for a fraction; a negative number as b is a RuntimeError. */
TERCEL_BINARY(pow)
/** The larger; NaN if either is. The gradient of equal numbers is shared. */
TERCEL_BINARY_METHOD(maximum)
/** The smaller; NaN if either is. The gradient of equal numbers is shared. */
TERCEL_BINARY_METHOD(minimum)
/** Angle of the point (b, a), in (-pi, pi]. */
TERCEL_BINARY(atan2)
/** sqrt(a * a + b * b) without overflow in between. */
TERCEL_BINARY(hypot)
/** log(exp(a) + exp(b)) without overflow in between. */
TERCEL_BINARY_METHOD(logaddexp)
/** Remainder of the division towards zero: it has the sign of a. Integers: RuntimeError if b has a zero. */
TERCEL_BINARY(fmod)
/** Remainder of the division towards minus infinity: it has the sign of b. Integers: RuntimeError if b has a zero. */
TERCEL_BINARY(remainder)
/** Largest whole number not above a / b. Integers: RuntimeError if b has a zero. */
TERCEL_BINARY(floor_divide)
/** Bits set in both. Integers and bool only, as the next two. */
TERCEL_BINARY(bitwise_and)
/** Bits set in either. */
TERCEL_BINARY(bitwise_or)
/** Bits set in one of them. */
TERCEL_BINARY(bitwise_xor)

// Comparisons and logic give bool. An integer tensor is compared with any integer exactly.
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
/** Whether both are different from zero. */
TERCEL_BINARY_RESULT(logical_and)
/** Whether either is different from zero. */
TERCEL_BINARY_RESULT(logical_or)
/** Whether one of them is different from zero. */
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
