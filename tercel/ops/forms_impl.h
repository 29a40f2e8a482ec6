// In-place forms of ops that are computed as a fresh tensor first, and what such ops check of their operands.
#pragma once

#include <string_view>

#include "tercel/core/dtype_words.h"
#include "tercel/core/tensor.h"

namespace tercel {

/** RuntimeError unless both dtypes are the same: "op: expected scalar type Float but found Double". */
void check_same_dtype(const char* op, const Tensor& a, const Tensor& b);
/** NotImplementedError for a tensor that is not strided or not on the CPU. */
void check_on_cpu(const char* op, const Tensor& x);

/** x = result, recorded as a copy; RuntimeError unless sizes agree and x's dtype can hold the result. */
const Tensor& assign_inplace(const char* op, const Tensor& x, const Tensor& result);

}  // namespace tercel
