// Views: different sizes and strides over the same storage. Nothing is copied; writing to a view writes to its base.
//
// This header has the views of all elements, and as_strided(); permute.h has those that reorder dimensions, slicing.h
// those that select elements. Negative dimensions count from the end (-1 is the last); a dimension out of range is an
// IndexError. Names, defaults and errors are PyTorch's.
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

/** The same elements in row-major order with different sizes (one may be -1); RuntimeError if that needs a copy. */
TERCEL_OP_API(method, python_method, cheap) Tensor view(const Tensor& x, IntSpan size);
namespace detail {
TERCEL_API Tensor view_as_dtype(const Tensor& x, ScalarType dtype);
}
/**
 * Reinterprets the bytes as another dtype: the last dimension grows or shrinks by the ratio of the item sizes. If these
 * differ, the last stride must be 1; for larger items the last size, the offset and all other strides must be multiples
 * of the ratio (RuntimeError). Not differentiable. (A template, so that view(x, {}) means sizes.)
 */
template <std::same_as<ScalarType> Dtype>
Tensor view(const Tensor& x, Dtype dtype) {
  return detail::view_as_dtype(x, dtype);
}
/** view() where possible, else a copy. */
TERCEL_OP_API(method, python) Tensor reshape(const Tensor& x, IntSpan shape);
TERCEL_OP_API(method, python_method, cheap) Tensor view_as(const Tensor& x, const Tensor& other);
TERCEL_OP_API(method, python_method) Tensor reshape_as(const Tensor& x, const Tensor& other);
/** Merges dimensions start_dim to end_dim into one. */
TERCEL_OP_API(method, python) Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1);
/** Splits a dimension into several, of the given sizes (one may be -1), whose product is its size. */
TERCEL_OP_API(method, python, cheap) Tensor unflatten(const Tensor& x, int64_t dim, IntSpan sizes);
/** All elements as a vector: a view if x is contiguous, else a copy. */
TERCEL_OP_API(method, python) Tensor ravel(const Tensor& x);

/** Removes all dimensions of size 1. */
TERCEL_OP_API(method, python, cheap, layout_sparse) Tensor squeeze(const Tensor& x);
/** Removes a dimension if its size is 1. */
TERCEL_OP_API(method, python, cheap, layout_sparse) Tensor squeeze(const Tensor& x, int64_t dim);
/** Removes those of the given dimensions whose size is 1; RuntimeError for duplicates. */
TERCEL_OP_API(method, python, cheap, layout_sparse) Tensor squeeze(const Tensor& x, IntSpan dim);
inline Tensor squeeze(const Tensor& x, std::initializer_list<int64_t> dims) { return squeeze(x, IntSpan(dims)); }
/** Inserts a dimension of size 1 before `dim` (-1: at the end). */
TERCEL_OP_API(method, python, cheap, layout_sparse) Tensor unsqueeze(const Tensor& x, int64_t dim);

/** Expands dimensions of size 1, and new leading ones, with stride 0; -1 keeps a size. RuntimeError for a sparse x. */
TERCEL_OP_API(method, layout_sparse) Tensor expand(const Tensor& x, IntSpan sizes);
TERCEL_OP_API(method, python_method, cheap, layout_sparse) Tensor expand_as(const Tensor& x, const Tensor& other);
/** Alias of expand(). */
TERCEL_OP_API(method, python, cheap, layout_sparse) Tensor broadcast_to(const Tensor& x, IntSpan size);
/** Expands all tensors to their common broadcast sizes; RuntimeError if there are none. */
TERCEL_OP_API(python_hidden, cheap) std::vector<Tensor> broadcast_tensors(Span<Tensor> tensors);
/** The common broadcast sizes of the given shapes; RuntimeError if there are none. */
TERCEL_API DimVector broadcast_shapes(Span<IntSpan> shapes);

/** A 0-dimensional tensor as [1]; others unchanged. */
TERCEL_OP_API(python_hidden, cheap) Tensor atleast_1d(const Tensor& x);
/** A 0-dimensional tensor as [1, 1], a vector as [1, n]; others unchanged. */
TERCEL_OP_API(python_hidden, cheap) Tensor atleast_2d(const Tensor& x);
/** A 0-dimensional tensor as [1, 1, 1], a vector as [1, n, 1], a matrix as [m, n, 1]; others unchanged. */
TERCEL_OP_API(python_hidden, cheap) Tensor atleast_3d(const Tensor& x);
TERCEL_OP_API(python_hidden, cheap) std::vector<Tensor> atleast_1d(Span<Tensor> tensors);
TERCEL_OP_API(python_hidden, cheap) std::vector<Tensor> atleast_2d(Span<Tensor> tensors);
TERCEL_OP_API(python_hidden, cheap) std::vector<Tensor> atleast_3d(Span<Tensor> tensors);

/**
 * A view with any sizes and strides from an offset in the storage (default: x's own); RuntimeError if an element would
 * be outside the storage.
 */
TERCEL_OP_API(method, python, cheap)
Tensor as_strided(const Tensor& x, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset = std::nullopt);

}  // namespace tercel
