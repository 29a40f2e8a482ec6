// Concatenation, and splitting into copies.
#pragma once

#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Concatenates tensors along a dimension; all other sizes must agree (RuntimeError). Dtypes are promoted; empty vectors
 * (of sizes [0]) are skipped.
 */
TERCEL_OP_API(python, autocast_widest, layout_sparse) Tensor cat(Span<Tensor> tensors, int64_t dim = 0);
/** Writes to a tensor of the result's sizes, which shares no memory with the inputs; not recorded. */
TERCEL_API const Tensor& cat_out(const Tensor& out, Span<Tensor> tensors, int64_t dim = 0);
/** Aliases of cat(). */
TERCEL_OP_API(python, out_apart, layout_sparse) Tensor concat(Span<Tensor> tensors, int64_t dim = 0);
TERCEL_OP_API(python, out_apart, layout_sparse) Tensor concatenate(Span<Tensor> tensors, int64_t dim = 0);
/** Concatenates tensors of equal sizes along a new dimension. */
TERCEL_OP_API(python, out_apart, autocast_widest, layout_sparse) Tensor stack(Span<Tensor> tensors, int64_t dim = 0);
/** Concatenates horizontally: along dimension 1; vectors and scalars along dimension 0. */
TERCEL_OP_API(python, out_apart, layout_sparse) Tensor hstack(Span<Tensor> tensors);
/** Concatenates vertically: along dimension 0, after atleast_2d(). */
TERCEL_OP_API(python, out_apart, layout_sparse) Tensor vstack(Span<Tensor> tensors);
TERCEL_OP_API(python, out_apart, layout_sparse) Tensor row_stack(Span<Tensor> tensors);
/** Concatenates in depth: along dimension 2, after atleast_3d(). */
TERCEL_OP_API(python, out_apart, layout_sparse) Tensor dstack(Span<Tensor> tensors);
/** Concatenates matrices and vectors (as columns) horizontally. */
TERCEL_OP_API(python, out_apart, layout_sparse) Tensor column_stack(Span<Tensor> tensors);
/** Block-diagonal matrix of matrices; a vector is one row, a scalar one element. Dtypes are promoted. */
TERCEL_OP_API(python_hidden) Tensor block_diag(Span<Tensor> tensors);

/** Copies of the pieces that split() returns as views. */
TERCEL_OP_API(python, out) std::vector<Tensor> split_copy(const Tensor& x, int64_t split_size, int64_t dim = 0);
TERCEL_OP_API(out) std::vector<Tensor> split_copy(const Tensor& x, IntSpan sizes, int64_t dim = 0);
TERCEL_OP_API(python, out)
std::vector<Tensor> split_with_sizes_copy(const Tensor& x, IntSpan split_sizes, int64_t dim = 0);

}  // namespace tercel
