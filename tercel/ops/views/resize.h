// Changing what a tensor is: its sizes, or the storage it looks at. The tensor object, and whoever holds it, stays.
//
// All refuse a tensor with a gradient history, and one made by detach() or data() when that may not change (context.h).
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Other sizes, row-major or in a format, over the same storage from the same offset. The storage grows if it must,
 * never shrinks, and keeps its bytes; what is new is not initialised. A tensor of these sizes already stays as it is,
 * strides too, unless a format is given. RuntimeError when a storage would have to grow that cannot.
 */
TERCEL_OP_API(method) const Tensor& resize_(const Tensor& x, IntSpan sizes);
TERCEL_OP_API(method) const Tensor& resize_(const Tensor& x, IntSpan sizes, MemoryFormat format);
/** The sizes of another tensor; Preserve: and the format that it suggests. */
TERCEL_OP_API(method) const Tensor& resize_as_(const Tensor& x, const Tensor& other);
TERCEL_OP_API(method) const Tensor& resize_as_(const Tensor& x, const Tensor& other, MemoryFormat format);

/**
 * Makes x look at a storage on its device, from an offset in elements; strides default to row-major. A storage that is
 * too small grows if it can. The tensor is no view of another one any more.
 */
TERCEL_OP_API(method)
const Tensor& set_(const Tensor& x, const Storage& source, int64_t storage_offset, IntSpan sizes, IntSpan strides = {});
/** All of it, as one dimension. */
TERCEL_OP_API(method) const Tensor& set_(const Tensor& x, const Storage& source);
/** Storage, offset, sizes and strides of another tensor of the same dtype. */
TERCEL_OP_API(method, python_method, cheap) const Tensor& set_(const Tensor& x, const Tensor& source);

/** Two tensors exchange storage, dtype, offset, sizes and strides. */
TERCEL_API void swap_data(const Tensor& a, const Tensor& b);

}  // namespace tercel
