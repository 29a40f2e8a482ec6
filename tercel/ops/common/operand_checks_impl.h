// Checks of operands. Arguments: the name of the op, with which error messages start, the operand and its name.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** NotImplementedError for a tensor that is not strided or not on the CPU. */
void check_on_cpu(const char* op, const Tensor& x);
/** RuntimeError unless both dtypes are the same: "op: expected scalar type Float but found Double". */
void check_same_dtype(const char* op, const Tensor& a, const Tensor& b);
/** Throws unless the index, the operand `name`, is defined and int64 or int32 (RuntimeError). */
void check_index_dtype(const char* op, const Tensor& index, const char* name = "index");
/** RuntimeError unless t, the operand `name`, is undefined or has an element for each channel. */
void check_channels(const char* op, const Tensor& t, const char* name, int64_t channels);
/** Throws unless x, the operand `name`, is defined and floating (NotImplementedError). */
void check_floating_point(const char* op, const Tensor& x, const char* name = "self");
/** Throws unless x, the operand `name`, is defined and not complex (NotImplementedError). */
void check_real(const char* op, const Tensor& x, const char* name = "self");

}  // namespace tercel
