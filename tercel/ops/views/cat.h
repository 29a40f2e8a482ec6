// Tensors put together, and taken apart into copies.
#pragma once

#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Tensors one after the other along a dimension; all others agree (RuntimeError). Dtypes are promoted; empty vectors
 * (of sizes [0]) are passed over.
 */
TERCEL_OP_API(python, autocast_widest) Tensor cat(Span<Tensor> tensors, int64_t dim = 0);
/** Into a tensor of the result's sizes, which shares no memory with the others; not recorded. */
TERCEL_API const Tensor& cat_out(const Tensor& out, Span<Tensor> tensors, int64_t dim = 0);
/** cat() by its other names. */
TERCEL_OP_API(python, out_apart) Tensor concat(Span<Tensor> tensors, int64_t dim = 0);
TERCEL_OP_API(python, out_apart) Tensor concatenate(Span<Tensor> tensors, int64_t dim = 0);
/** Tensors of the same sizes along a new dimension. */
TERCEL_OP_API(python, out_apart, autocast_widest) Tensor stack(Span<Tensor> tensors, int64_t dim = 0);
/** Side by side: along dimension 1; vectors and scalars along dimension 0. */
TERCEL_OP_API(python, out_apart) Tensor hstack(Span<Tensor> tensors);
/** One above the other: along dimension 0, of what atleast_2d() makes of them. */
TERCEL_OP_API(python, out_apart) Tensor vstack(Span<Tensor> tensors);
TERCEL_OP_API(python, out_apart) Tensor row_stack(Span<Tensor> tensors);
/** One behind the other: along dimension 2, of what atleast_3d() makes of them. */
TERCEL_OP_API(python, out_apart) Tensor dstack(Span<Tensor> tensors);
/** Vectors as columns of a matrix, beside matrices. */
TERCEL_OP_API(python, out_apart) Tensor column_stack(Span<Tensor> tensors);
/** Matrices along the diagonal of one of zeros; a vector is one row, a scalar one element. Dtypes are promoted. */
TERCEL_OP_API(python_hidden) Tensor block_diag(Span<Tensor> tensors);

/** Copies of the pieces that split() would view. */
TERCEL_OP_API(python, out) std::vector<Tensor> split_copy(const Tensor& x, int64_t split_size, int64_t dim = 0);
TERCEL_OP_API(out) std::vector<Tensor> split_copy(const Tensor& x, IntSpan sizes, int64_t dim = 0);
TERCEL_OP_API(python, out)
std::vector<Tensor> split_with_sizes_copy(const Tensor& x, IntSpan split_sizes, int64_t dim = 0);

}  // namespace tercel
