// Elements and rows selected by index tensors (int32 or int64). An index out of range is an error that names it;
// negative indices are out of range.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** The slices of dimension `dim` selected by `index` [n], in its order. */
TERCEL_OP_API(method, out_apart, layout_sparse) Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
/** out[i][j] = x[index[i][j]][j] for dim 0, and so on: index has x's number of dimensions and, except in dim, no larger
 * sizes. */
TERCEL_OP_API(method, out_apart) Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);
/** `value` where mask (bool, broadcast to x) is true, else x. */
TERCEL_OP_API(method, out) Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);
TERCEL_OP_API(method) const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, Scalar value);

}  // namespace tercel
