// Reverses of views: copies with a part replaced.
//
// x_scatter(x, src, ...) is a copy of x in which the part that view x selects is replaced by src, which must have the
// part's sizes (RuntimeError); gradients flow to both.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {
/** A copy of x in which src replaces the part selected by the view that is named before _scatter. */
TERCEL_OP_API(method, python, out, no_python_out)
Tensor select_scatter(const Tensor& x, const Tensor& src, int64_t dim, int64_t index);
TERCEL_OP_API(method, out)
Tensor slice_scatter(const Tensor& x, const Tensor& src, int64_t dim = 0, int64_t start = 0, int64_t end = INT64_MAX,
                     int64_t step = 1);
TERCEL_OP_API(method, python, out, no_python_out)
Tensor diagonal_scatter(const Tensor& x, const Tensor& src, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
/** The copy has x's storage offset and strides. With gradients, x must be contiguous and contain the part. */
TERCEL_OP_API(method, python, out, no_python_out)
Tensor as_strided_scatter(const Tensor& x, const Tensor& src, IntSpan size, IntSpan stride,
                          std::optional<int64_t> storage_offset = std::nullopt);

}  // namespace tercel
