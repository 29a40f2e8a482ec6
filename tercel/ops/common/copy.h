// Copies, conversions, filling, and single values.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** A copy. Preserve keeps the order of dimensions in memory of a dense tensor. */
TERCEL_OP_API(method, python, keyword = memory_format)
Tensor clone(const Tensor& x, MemoryFormat memory_format = MemoryFormat::Preserve);
/** x itself if it is contiguous in the format, else a copy that is; RuntimeError for Preserve. */
TERCEL_OP_API(method) Tensor contiguous(const Tensor& x, MemoryFormat format = MemoryFormat::Contiguous);
/**
 * x itself if it has the dtype and suggests the format (unless `copy`), else a converted copy with exactly that
 * format's strides. Float to integer truncates and saturates; NaN becomes 0.
 */
TERCEL_OP_API(method)
Tensor to(const Tensor& x, ScalarType dtype, bool copy = false, MemoryFormat format = MemoryFormat::Preserve);
TERCEL_OP_API(method) Tensor to(const Tensor& x, MemoryFormat format);
/** x = source, broadcast and converted. */
TERCEL_OP_API(method) const Tensor& copy_(const Tensor& x, const Tensor& source);
/** Every element set to the value, converted. */
TERCEL_OP_API(method) const Tensor& fill_(const Tensor& x, Scalar value);
TERCEL_OP_API(method, python) const Tensor& zero_(const Tensor& x);
/** The value of a tensor of one element; RuntimeError for any other. */
TERCEL_API Scalar item(const Tensor& x);

}  // namespace tercel
