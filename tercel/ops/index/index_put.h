// Slices and elements of a tensor, changed at the positions given by an index tensor. Variants without underscore work
// on a copy. An index out of range is an IndexError, and x is then unchanged.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** x[:, index[i]] += alpha * source[:, i] for dim 1, and so on; source has x's dtype. Negative indices are refused. */
TERCEL_OP_API(method, python, out_apart, keyword = alpha)
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1);
TERCEL_OP_API(method, python_method, keyword = alpha)
const Tensor& index_add_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1);
/** x[:, index[i]] = source[:, i] for dim 1, and so on; source has x's dtype. Negative indices are refused. */
TERCEL_OP_API(method, python, out_apart, autocast_widest)
Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
TERCEL_OP_API(method, python_method)
const Tensor& index_copy_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
/** x[:, index[i]] = value for dim 1, and so on. A tensor as value must be 0-dimensional. */
TERCEL_OP_API(method, python, out_apart)
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, Scalar value);
TERCEL_OP_API(method, python_method)
const Tensor& index_fill_(const Tensor& x, int64_t dim, const Tensor& index, Scalar value);
TERCEL_OP_API(method, python, out_apart)
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value);
TERCEL_OP_API(method, python_method)
const Tensor& index_fill_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value);

/** The elements at flat (row-major) positions `index` (negative: from the end), in index's shape. */
TERCEL_OP_API(method, out_apart) Tensor take(const Tensor& x, const Tensor& index);
/** Flat position index[i] = source[i], or += with `accumulate`; both have the same number of elements. */
TERCEL_OP_API(method, python, out, no_python_out)
Tensor put(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate = false);
TERCEL_OP_API(method, python_method)
const Tensor& put_(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate = false);
/** gather() after x and indices (int64) are broadcast to each other, except in `dim`. */
TERCEL_OP_API(method, out_apart) Tensor take_along_dim(const Tensor& x, const Tensor& indices, int64_t dim);
/** take_along_dim() of both flattened. */
TERCEL_OP_API(method, out_apart) Tensor take_along_dim(const Tensor& x, const Tensor& indices);

/** x where mask (bool, broadcast with x) is false, else the next element of source in row-major order. */
TERCEL_OP_API(method, out) Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);
TERCEL_OP_API(method) const Tensor& masked_scatter_(const Tensor& x, const Tensor& mask, const Tensor& source);

}  // namespace tercel
