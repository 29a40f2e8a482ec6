// Checks of operands. The op's name is the first argument, as errors start with it.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** NotImplementedError for a tensor that is not strided or not on the CPU. */
void check_on_cpu(const char* op, const Tensor& x);
/** RuntimeError unless both dtypes are the same: "op: expected scalar type Float but found Double". */
void check_same_dtype(const char* op, const Tensor& a, const Tensor& b);
/** Throws unless x, the operand `name`, is defined and floating (NotImplementedError). */
void check_floating_point(const char* op, const Tensor& x, const char* name = "self");
/** Throws unless x, the operand `name`, is defined and not complex (NotImplementedError). */
void check_real(const char* op, const Tensor& x, const char* name = "self");

/** x = result, recorded as a copy; RuntimeError unless sizes agree and the result can be cast to x's dtype. */
const Tensor& assign_inplace(const char* op, const Tensor& x, const Tensor& result);

}  // namespace tercel
