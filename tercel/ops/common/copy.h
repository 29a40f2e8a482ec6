// Copies, dtype conversion, filling, and reading single values.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Returns a copy. Preserve keeps the dimension order in memory of a dense tensor. */
TERCEL_OP_API(method, python, keyword = memory_format, layout_any)
Tensor clone(const Tensor& x, MemoryFormat memory_format = MemoryFormat::Preserve);
/** Returns x itself if it is contiguous in the format, else a contiguous copy; RuntimeError for Preserve. */
TERCEL_OP_API(method) Tensor contiguous(const Tensor& x, MemoryFormat format = MemoryFormat::Contiguous);
/**
 * Returns x itself if it has the dtype and suggests the format (unless `copy`), else a converted copy with exactly that
 * format's strides. Float to integer truncates and saturates; NaN becomes 0.
 */
TERCEL_OP_API(method)
Tensor to(const Tensor& x, ScalarType dtype, bool copy = false, MemoryFormat format = MemoryFormat::Preserve);
TERCEL_OP_API(method) Tensor to(const Tensor& x, MemoryFormat format);
/** Copies source into x, broadcast and converted to x's dtype. */
TERCEL_OP_API(method) const Tensor& copy_(const Tensor& x, const Tensor& source);
/** Sets every element to the value, converted to x's dtype. */
TERCEL_OP_API(method) const Tensor& fill_(const Tensor& x, Scalar value);
TERCEL_OP_API(method, python, layout_sparse) const Tensor& zero_(const Tensor& x);
/** The value of a one-element tensor; RuntimeError for any other size. */
TERCEL_API Scalar item(const Tensor& x);

}  // namespace tercel
