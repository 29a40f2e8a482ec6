// Diagonals and triangles of matrices, and of batches of them. Names, defaults and errors are PyTorch's.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** A view of the diagonal of dimensions dim1 and dim2, as the last dimension; `offset` above (below if negative). */
TERCEL_OP_API(method, python, cheap)
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
/** A vector as the diagonal of a square matrix of zeros; of a matrix the diagonal, copied. */
TERCEL_OP_API(method, python, out) Tensor diag(const Tensor& x, int64_t diagonal = 0);
/** The last dimension as the diagonal of dimensions dim1 and dim2 of a tensor of zeros. */
TERCEL_OP_API(method, python, out, no_python_out)
Tensor diag_embed(const Tensor& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
/** All elements as the diagonal of a square matrix of zeros. */
TERCEL_OP_API(method, python) Tensor diagflat(const Tensor& x, int64_t offset = 0);
/**
 * Sets the diagonal of a matrix, or of a tensor whose sizes are all the same; `wrap`: of a tall matrix it begins again
 * below its end, one row further down.
 */
TERCEL_OP_API(method, python_method)
const Tensor& fill_diagonal_(const Tensor& x, Scalar fill_value, bool wrap = false);
/** The sum of a matrix' diagonal; of integers in int64. */
TERCEL_OP_API(method, python, autocast_f32) Tensor trace(const Tensor& x);

/** x [..., n, m] with zeros above the diagonal. */
TERCEL_OP_API(method, python) Tensor tril(const Tensor& x, int64_t diagonal = 0);
TERCEL_OP_API(method, python_method) const Tensor& tril_(const Tensor& x, int64_t diagonal = 0);
TERCEL_API const Tensor& tril_out(const Tensor& out, const Tensor& x, int64_t diagonal = 0);
/** x [..., n, m] with zeros below the diagonal. */
TERCEL_OP_API(method, python) Tensor triu(const Tensor& x, int64_t diagonal = 0);
TERCEL_OP_API(method, python_method) const Tensor& triu_(const Tensor& x, int64_t diagonal = 0);
TERCEL_API const Tensor& triu_out(const Tensor& out, const Tensor& x, int64_t diagonal = 0);

/** Rows and columns [2, n] of the elements that tril() keeps of a row x col matrix, in row-major order. */
TERCEL_API Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, TensorOptions options = kInt64);
/** The same for triu(). */
TERCEL_API Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, TensorOptions options = kInt64);

}  // namespace tercel
