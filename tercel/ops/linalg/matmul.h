// Products of matrices and vectors.
//
// Operands have one dtype, float32 or float64, and any strides; vectors and matrices of other dtypes raise
// NotImplementedError, unless stated otherwise. Variants that end in `_` overwrite the first operand and are recorded;
// variants in _out write to a tensor of the result's shape and are not.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** input [n, k] times mat2 [k, m]. */
TERCEL_OP_API(method, python, autocast_lower, layout_sparse) Tensor mm(const Tensor& input, const Tensor& mat2);
TERCEL_API const Tensor& mm_out(const Tensor& out, const Tensor& input, const Tensor& mat2);
/** Batched matrix product: input [batch, n, k], mat2 [batch, k, m]. */
TERCEL_OP_API(method, python, autocast_lower, layout_sparse) Tensor bmm(const Tensor& input, const Tensor& mat2);
TERCEL_API const Tensor& bmm_out(const Tensor& out, const Tensor& input, const Tensor& mat2);
/** Vector, matrix and batched products by NumPy's rules: a vector is a row (on the left) or a column (on the right). */
TERCEL_OP_API(method, python, autocast_lower, layout_sparse) Tensor matmul(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& matmul_out(const Tensor& out, const Tensor& a, const Tensor& b);
/** input [n, k] times vec [k]. */
TERCEL_OP_API(method, python, layout_sparse) Tensor mv(const Tensor& input, const Tensor& vec);
TERCEL_API const Tensor& mv_out(const Tensor& out, const Tensor& input, const Tensor& vec);
/** The inner product of two vectors; also for integers, which wrap. */
TERCEL_OP_API(method, python) Tensor dot(const Tensor& input, const Tensor& tensor);
TERCEL_API const Tensor& dot_out(const Tensor& out, const Tensor& input, const Tensor& tensor);
/** dot() with the first vector conjugated; the same as dot() for real numbers. */
TERCEL_OP_API(method, python) Tensor vdot(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& vdot_out(const Tensor& out, const Tensor& a, const Tensor& b);
/** The outer product of input [n] and vec2 [m]; any dtypes, promoted. */
TERCEL_OP_API(method, python) Tensor outer(const Tensor& input, const Tensor& vec2);
TERCEL_API const Tensor& outer_out(const Tensor& out, const Tensor& input, const Tensor& vec2);
/** Alias of outer(). */
TERCEL_OP_API(method, python, out) Tensor ger(const Tensor& input, const Tensor& vec2);

// beta * x + alpha * product, with x broadcast to the product's shape. With beta = 0 x is not read, even if NaN.
/** The product is that of matrices. */
TERCEL_OP_API(method, python, autocast_lower, keyword = beta, layout_sparse)
Tensor addmm(const Tensor& x, const Tensor& mat1, const Tensor& mat2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method, python_method, keyword = beta)
const Tensor& addmm_(const Tensor& x, const Tensor& mat1, const Tensor& mat2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& addmm_out(const Tensor& out, const Tensor& x, const Tensor& mat1, const Tensor& mat2,
                                   Scalar beta = 1, Scalar alpha = 1);
/** The product is that of a matrix and a vector. */
TERCEL_OP_API(method, python, keyword = beta, layout_sparse)
Tensor addmv(const Tensor& x, const Tensor& mat, const Tensor& vec, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method, python_method, keyword = beta)
const Tensor& addmv_(const Tensor& x, const Tensor& mat, const Tensor& vec, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& addmv_out(const Tensor& out, const Tensor& x, const Tensor& mat, const Tensor& vec,
                                   Scalar beta = 1, Scalar alpha = 1);
/** The product is the outer product of vectors; any dtypes, promoted. */
TERCEL_OP_API(method, python, keyword = beta)
Tensor addr(const Tensor& x, const Tensor& vec1, const Tensor& vec2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method, python_method, keyword = beta)
const Tensor& addr_(const Tensor& x, const Tensor& vec1, const Tensor& vec2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& addr_out(const Tensor& out, const Tensor& x, const Tensor& vec1, const Tensor& vec2,
                                  Scalar beta = 1, Scalar alpha = 1);
/** The product is batched, as in bmm(). */
TERCEL_OP_API(method, python, autocast_lower, keyword = beta)
Tensor baddbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method, python_method, keyword = beta)
const Tensor& baddbmm_(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& baddbmm_out(const Tensor& out, const Tensor& x, const Tensor& batch1, const Tensor& batch2,
                                     Scalar beta = 1, Scalar alpha = 1);
/** The product is the sum over the batch of bmm(). */
TERCEL_OP_API(method, python, autocast_lower, keyword = beta)
Tensor addbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method, python_method, keyword = beta)
const Tensor& addbmm_(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& addbmm_out(const Tensor& out, const Tensor& x, const Tensor& batch1, const Tensor& batch2,
                                    Scalar beta = 1, Scalar alpha = 1);

}  // namespace tercel
