// Copies of views: the same functions with new, row-major results. narrow_copy() copies what narrow() returns as a
// view, and so on; split_copy() and split_with_sizes_copy() are in cat.h.
#pragma once

#include <optional>
#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/** A copy of the view that is named before _copy; differentiable. */
TERCEL_OP_API(python, out) Tensor alias_copy(const Tensor& x);
TERCEL_OP_API(python, out)
Tensor as_strided_copy(const Tensor& x, IntSpan size, IntSpan stride,
                       std::optional<int64_t> storage_offset = std::nullopt);
TERCEL_OP_API(python, out) Tensor detach_copy(const Tensor& x);  ///< not differentiable
TERCEL_OP_API(python, out)
Tensor diagonal_copy(const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
TERCEL_OP_API(out) Tensor expand_copy(const Tensor& x, IntSpan sizes);
TERCEL_OP_API(method, python, out, layout_sparse)
Tensor narrow_copy(const Tensor& x, int64_t dim, int64_t start, int64_t length);
TERCEL_OP_API(python, out) Tensor permute_copy(const Tensor& x, IntSpan dims);
TERCEL_OP_API(python, out, layout_sparse) Tensor select_copy(const Tensor& x, int64_t dim, int64_t index);
TERCEL_OP_API(out)
Tensor slice_copy(const Tensor& x, int64_t dim = 0, int64_t start = 0, int64_t end = INT64_MAX, int64_t step = 1);
TERCEL_OP_API(python, out) Tensor squeeze_copy(const Tensor& x);
TERCEL_OP_API(python, out) Tensor squeeze_copy(const Tensor& x, int64_t dim);
TERCEL_OP_API(python, out) Tensor t_copy(const Tensor& x);
TERCEL_OP_API(python, out) Tensor transpose_copy(const Tensor& x, int64_t dim0, int64_t dim1);
TERCEL_OP_API(python, out) std::vector<Tensor> unbind_copy(const Tensor& x, int64_t dim = 0);
TERCEL_OP_API(python, out) Tensor unfold_copy(const Tensor& x, int64_t dimension, int64_t size, int64_t step);
TERCEL_OP_API(python, out) Tensor unsqueeze_copy(const Tensor& x, int64_t dim);
TERCEL_OP_API(python, out) Tensor view_copy(const Tensor& x, IntSpan size);

}  // namespace tercel
