// In-place changes of a tensor's sizes or storage. The tensor object, and all references to it, stay valid.
//
// All refuse tensors with a gradient history, and results of detach() or data() that may not change (see context.h).
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Changes the sizes, row-major or in a format, over the same storage and offset. The storage grows if necessary, never
 * shrinks, and keeps its bytes; new elements are not initialised. A tensor that has these sizes already is unchanged,
 * including its strides, unless a format is given. RuntimeError if the storage needs to grow and cannot.
 */
TERCEL_OP_API(method) const Tensor& resize_(const Tensor& x, IntSpan sizes);
TERCEL_OP_API(method) const Tensor& resize_(const Tensor& x, IntSpan sizes, MemoryFormat format);
/** Resizes to the sizes of another tensor; Preserve also uses the format that it suggests. COO: resize_as_sparse_(). */
TERCEL_OP_API(method, layout_sparse) const Tensor& resize_as_(const Tensor& x, const Tensor& other);
TERCEL_OP_API(method) const Tensor& resize_as_(const Tensor& x, const Tensor& other, MemoryFormat format);

/**
 * Makes x refer to a storage on its device, from an offset in elements; strides default to row-major. A storage that is
 * too small grows if it can. x is then no longer a view of another tensor.
 */
TERCEL_OP_API(method)
const Tensor& set_(const Tensor& x, const Storage& source, int64_t storage_offset, IntSpan sizes, IntSpan strides = {});
/** The entire storage as one dimension. */
TERCEL_OP_API(method) const Tensor& set_(const Tensor& x, const Storage& source);
/** Uses storage, offset, sizes and strides of another tensor of the same dtype. */
TERCEL_OP_API(method, python_method, cheap) const Tensor& set_(const Tensor& x, const Tensor& source);

/** Exchanges storage, dtype, offset, sizes and strides of two tensors. */
TERCEL_API void swap_data(const Tensor& a, const Tensor& b);

}  // namespace tercel
