// In-place versions of views: change the sizes and strides of a tensor, not its elements.
//
// Like every in-place op they bump the version, and refuse a leaf that requires a gradient, a view of one, and a view
// from an op that returns several (RuntimeError). A view's base, and other views of it, keep their sizes and history.
// Results of detach() or data() are refused.
#pragma once

#include <initializer_list>
#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {
/** Turns x itself into the view that is named before the underscore. */
TERCEL_OP_API(method, python_method, cheap, layout_sparse)
const Tensor& transpose_(const Tensor& x, int64_t dim0, int64_t dim1);
TERCEL_OP_API(method, python_method, cheap, layout_sparse)
const Tensor& swapaxes_(const Tensor& x, int64_t axis0, int64_t axis1);
TERCEL_OP_API(method, python_method, cheap, layout_sparse)
const Tensor& swapdims_(const Tensor& x, int64_t dim0, int64_t dim1);
TERCEL_OP_API(method, python_method, cheap, layout_sparse) const Tensor& t_(const Tensor& x);
TERCEL_OP_API(method, python_method, cheap) const Tensor& squeeze_(const Tensor& x);
TERCEL_OP_API(method, python_method, cheap) const Tensor& squeeze_(const Tensor& x, int64_t dim);
TERCEL_OP_API(method, python_method, cheap) const Tensor& squeeze_(const Tensor& x, IntSpan dim);
inline const Tensor& squeeze_(const Tensor& x, std::initializer_list<int64_t> dims) {
  return squeeze_(x, IntSpan(dims));
}
TERCEL_OP_API(method, python_method, cheap) const Tensor& unsqueeze_(const Tensor& x, int64_t dim);
TERCEL_OP_API(method, python_method, cheap)
const Tensor& as_strided_(const Tensor& x, IntSpan size, IntSpan stride,
                          std::optional<int64_t> storage_offset = std::nullopt);

}  // namespace tercel
