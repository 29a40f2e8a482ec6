// Other sizes and strides over the same storage. Nothing is copied; writing to a view writes to its base.
//
// Here are the views that see all elements, and as_strided(); permute.h has those that change the order of
// dimensions, slicing.h those that see a part. A dimension may be counted from the end (-1 is the last); one out of
// range is an IndexError. Names, defaults and errors are PyTorch's.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <vector>

#include "tercel/core/tensor.h"
// IWYU pragma: begin_exports
#include "tercel/ops/views/permute.h"
#include "tercel/ops/views/slicing.h"
// IWYU pragma: end_exports

namespace tercel {

/** The same elements in row-major order as other sizes (one may be -1); RuntimeError when that needs a copy. */
TERCEL_OP_API(method, python_method, cheap) Tensor view(const Tensor& x, IntSpan size);
namespace detail {
TERCEL_API Tensor view_as_dtype(const Tensor& x, ScalarType dtype);
}
/**
 * The same bytes as another dtype: the last dimension grows or shrinks by the ratio of the item sizes. For items of
 * another size the last stride must be 1; for larger ones the last size, the offset and all other strides must be
 * multiples of the ratio (RuntimeError). No gradient flows. (A template, so that view(x, {}) means sizes.)
 */
template <std::same_as<ScalarType> Dtype>
Tensor view(const Tensor& x, Dtype dtype) {
  return detail::view_as_dtype(x, dtype);
}
/** view() where possible, else a copy. */
TERCEL_OP_API(method, python) Tensor reshape(const Tensor& x, IntSpan shape);
TERCEL_OP_API(method, python_method, cheap) Tensor view_as(const Tensor& x, const Tensor& other);
TERCEL_OP_API(method, python_method) Tensor reshape_as(const Tensor& x, const Tensor& other);
/** Dimensions start_dim to end_dim as one. */
TERCEL_OP_API(method, python) Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1);
/** One dimension as several, of the given sizes (one may be -1), whose product is its size. */
TERCEL_OP_API(method, python, cheap) Tensor unflatten(const Tensor& x, int64_t dim, IntSpan sizes);
/** All elements as a vector: a view if x is contiguous, else a copy. */
TERCEL_OP_API(method, python) Tensor ravel(const Tensor& x);

/** Without the dimensions of size 1. */
TERCEL_OP_API(method, python, cheap) Tensor squeeze(const Tensor& x);
/** Without that dimension if its size is 1. */
TERCEL_OP_API(method, python, cheap) Tensor squeeze(const Tensor& x, int64_t dim);
/** Without those of the given dimensions whose size is 1; RuntimeError for a dimension named twice. */
TERCEL_OP_API(method, python, cheap) Tensor squeeze(const Tensor& x, IntSpan dim);
inline Tensor squeeze(const Tensor& x, std::initializer_list<int64_t> dims) { return squeeze(x, IntSpan(dims)); }
/** With a dimension of size 1 put in before `dim` (-1: at the end). */
TERCEL_OP_API(method, python, cheap) Tensor unsqueeze(const Tensor& x, int64_t dim);

/** Dimensions of size 1, and new leading ones, repeated with stride 0; -1 keeps a size. */
TERCEL_OP_API(method) Tensor expand(const Tensor& x, IntSpan sizes);
TERCEL_OP_API(method, python_method, cheap) Tensor expand_as(const Tensor& x, const Tensor& other);
/** expand() by its other name. */
TERCEL_OP_API(method, python, cheap) Tensor broadcast_to(const Tensor& x, IntSpan size);
/** Every tensor expanded to the sizes that all broadcast to; RuntimeError when there are none. */
TERCEL_OP_API(python_hidden, cheap) std::vector<Tensor> broadcast_tensors(Span<Tensor> tensors);
/** The sizes that tensors of those sizes broadcast to; RuntimeError when there are none. */
TERCEL_API DimVector broadcast_shapes(Span<IntSpan> shapes);

/** A tensor without dimensions as [1]; others as they are. */
TERCEL_OP_API(python_hidden, cheap) Tensor atleast_1d(const Tensor& x);
/** A tensor without dimensions as [1, 1], a vector as [1, n]; others as they are. */
TERCEL_OP_API(python_hidden, cheap) Tensor atleast_2d(const Tensor& x);
/** A tensor without dimensions as [1, 1, 1], a vector as [1, n, 1], a matrix as [m, n, 1]; others as they are. */
TERCEL_OP_API(python_hidden, cheap) Tensor atleast_3d(const Tensor& x);
TERCEL_OP_API(python_hidden, cheap) std::vector<Tensor> atleast_1d(Span<Tensor> tensors);
TERCEL_OP_API(python_hidden, cheap) std::vector<Tensor> atleast_2d(Span<Tensor> tensors);
TERCEL_OP_API(python_hidden, cheap) std::vector<Tensor> atleast_3d(Span<Tensor> tensors);

/**
 * Any sizes and strides from an offset in the storage (default: x's own); RuntimeError when an element would lie
 * outside it.
 */
TERCEL_OP_API(method, python, cheap)
Tensor as_strided(const Tensor& x, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset = std::nullopt);

}  // namespace tercel
