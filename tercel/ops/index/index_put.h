// Slices and elements of a tensor changed where a tensor of indices says. The variants without underscore work on a
// copy. An index outside its dimension is an IndexError, and x is then as it was before.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** x[:, index[i]] += alpha * source[:, i] for dim 1, and so on; source is of x's dtype. Negative indices are outside.
 */
TERCEL_OP_API(method, python, out_apart, keyword = alpha)
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1);
TERCEL_OP_API(method, python_method, keyword = alpha)
const Tensor& index_add_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1);
/** x[:, index[i]] = source[:, i] for dim 1, and so on; source is of x's dtype. Negative indices are outside. */
TERCEL_OP_API(method, python, out_apart, autocast_widest)
Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
TERCEL_OP_API(method, python_method)
const Tensor& index_copy_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
/** x[:, index[i]] = value for dim 1, and so on. A tensor as value has no dimensions. */
TERCEL_OP_API(method, python, out_apart)
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, Scalar value);
TERCEL_OP_API(method, python_method)
const Tensor& index_fill_(const Tensor& x, int64_t dim, const Tensor& index, Scalar value);
TERCEL_OP_API(method, python, out_apart)
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value);
TERCEL_OP_API(method, python_method)
const Tensor& index_fill_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value);

/** The elements with the row-major numbers `index` (negative ones count from the end), in index's sizes. */
TERCEL_OP_API(method, out_apart) Tensor take(const Tensor& x, const Tensor& index);
/** The element number index[i] = source[i], or += with `accumulate`; as many of one as of the other. */
TERCEL_OP_API(method, python, out, no_python_out)
Tensor put(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate = false);
TERCEL_OP_API(method, python_method)
const Tensor& put_(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate = false);
/** gather() after x and indices (int64) are broadcast to each other, apart from `dim`. */
TERCEL_OP_API(method, out_apart) Tensor take_along_dim(const Tensor& x, const Tensor& indices, int64_t dim);
/** take(): both as vectors. */
TERCEL_OP_API(method, out_apart) Tensor take_along_dim(const Tensor& x, const Tensor& indices);

/** x where mask (bool, broadcast with x) is false; where it is true, the next element of source, in row-major order. */
TERCEL_OP_API(method, out) Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);
TERCEL_OP_API(method) const Tensor& masked_scatter_(const Tensor& x, const Tensor& mask, const Tensor& source);

}  // namespace tercel
