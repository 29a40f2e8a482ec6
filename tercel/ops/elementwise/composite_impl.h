// Helpers of composite ops.
#pragma once

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/tensor_iterator.h"

namespace tercel {

/** x = f(x), recorded like f. RuntimeError if the result cannot be cast to x's dtype. */
template <class F>
const Tensor& assign_inplace(const char* op, const Tensor& x, F f) {
  check_strided(op, x);
  // Backward needs the overwritten value.
  const Tensor result = f(should_record(x) ? clone(x) : x);
  TERCEL_CHECK(can_cast(result.dtype(), x.dtype()), RuntimeError, op, ": result type ", to_string(result.dtype()),
               " can't be cast to the desired output type ", to_string(x.dtype()));
  return copy_(x, result);
}

/** Composite parts of ops in unary_ops.h, for floating x. */
Tensor hardswish_of_floats(const Tensor& x);
Tensor nan_to_num_of_floats(const Tensor& x, double nan, double largest);
/** gelu() by tanh, of a floating tensor. */
Tensor gelu_tanh(const Tensor& x);
/** x above for x > 0, else expm1(x) below; of a floating tensor. */
Tensor elu_of(const Tensor& x, double below, double above);

/** a / b of integers, rounded towards zero; b has no zero. */
Tensor divide_integers(OperandRef a, OperandRef b);

}  // namespace tercel
