// Helpers of composite elementwise ops.
#pragma once

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/tensor_iterator.h"

namespace tercel {

/** x = f(x), recorded like f. RuntimeError if the result cannot be cast to x's dtype. */
template <class F>
const Tensor& assign_inplace(const char* op, const Tensor& x, F f) {
  check_defined(op, x, "self");
  // Backward needs the overwritten value.
  const Tensor result = f(should_record(x) ? clone(x) : x);
  TERCEL_CHECK(can_cast(result.dtype(), x.dtype()), RuntimeError, op, ": result type ", to_string(result.dtype()),
               " can't be cast to the desired output type ", to_string(x.dtype()));
  return copy_(x, result);
}

/** hardswish() for floating x. */
Tensor hardswish_of_floats(const Tensor& x);
Tensor nan_to_num_of_floats(const Tensor& x, double nan, double largest);
/** The tanh approximation of gelu(), for a floating tensor. */
Tensor gelu_tanh(const Tensor& x);
/** above * x for x > 0, else below * expm1(x); for a floating tensor. */
Tensor elu_of(const Tensor& x, double below, double above);

/** Truncating division of integers; b contains no zero. */
Tensor divide_integers(OperandRef a, OperandRef b);

}  // namespace tercel
