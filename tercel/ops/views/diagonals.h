// Diagonals and triangles of matrices and of batches of matrices. Names, defaults and errors are PyTorch's.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** View of the diagonal of dimensions dim1 and dim2, as the last dimension; `offset` above it (below if negative). */
TERCEL_OP_API(method, python, cheap)
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
/** A square matrix with a given vector as its diagonal, or a copy of the diagonal of a given matrix. */
TERCEL_OP_API(method, python, out) Tensor diag(const Tensor& x, int64_t diagonal = 0);
/** Zeros, with the last dimension of x as the diagonal of dimensions dim1 and dim2. */
TERCEL_OP_API(method, python, out, no_python_out)
Tensor diag_embed(const Tensor& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
/** A square matrix with all elements of x as its diagonal. */
TERCEL_OP_API(method, python) Tensor diagflat(const Tensor& x, int64_t offset = 0);
/**
 * Fills the diagonal of a matrix, or of a tensor whose sizes are all equal. `wrap`: in a tall matrix the diagonal
 * restarts below its end, after one row left free.
 */
TERCEL_OP_API(method, python_method)
const Tensor& fill_diagonal_(const Tensor& x, Scalar fill_value, bool wrap = false);
/** The sum of a matrix's diagonal; int64 for integers. */
TERCEL_OP_API(method, python, autocast_f32) Tensor trace(const Tensor& x);

/** x [..., n, m] with zeros above the given diagonal. */
TERCEL_OP_API(method, python) Tensor tril(const Tensor& x, int64_t diagonal = 0);
TERCEL_OP_API(method, python_method) const Tensor& tril_(const Tensor& x, int64_t diagonal = 0);
TERCEL_API const Tensor& tril_out(const Tensor& out, const Tensor& x, int64_t diagonal = 0);
/** x [..., n, m] with zeros below the given diagonal. */
TERCEL_OP_API(method, python) Tensor triu(const Tensor& x, int64_t diagonal = 0);
TERCEL_OP_API(method, python_method) const Tensor& triu_(const Tensor& x, int64_t diagonal = 0);
TERCEL_API const Tensor& triu_out(const Tensor& out, const Tensor& x, int64_t diagonal = 0);

/** Rows and columns [2, n] of the elements that tril() keeps of a row x col matrix, in row-major order. */
TERCEL_API Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, TensorOptions options = kInt64);
/** The same for triu(). */
TERCEL_API Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, TensorOptions options = kInt64);

}  // namespace tercel
