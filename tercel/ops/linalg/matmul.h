// Products of matrices and vectors.
//
// Operands are of one dtype, float32 or float64, with any strides; vectors and matrices of other dtypes are a
// NotImplementedError, unless said otherwise. Variants that end in `_` write over the first operand and are recorded,
// variants in _out write to a tensor of the result's shape and are not.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** input [n, k] times mat2 [k, m]. */
TERCEL_OP_API(method, python, autocast_lower) Tensor mm(const Tensor& input, const Tensor& mat2);
TERCEL_API const Tensor& mm_out(const Tensor& out, const Tensor& input, const Tensor& mat2);
/** Products of pairs: input [batch, n, k], mat2 [batch, k, m]. */
TERCEL_OP_API(method, python, autocast_lower) Tensor bmm(const Tensor& input, const Tensor& mat2);
TERCEL_API const Tensor& bmm_out(const Tensor& out, const Tensor& input, const Tensor& mat2);
/** Vector, matrix and batched products by NumPy's rules: vectors count as row (left) or column (right). */
TERCEL_OP_API(method, python, autocast_lower) Tensor matmul(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& matmul_out(const Tensor& out, const Tensor& a, const Tensor& b);
/** input [n, k] times vec [k]. */
TERCEL_OP_API(method, python) Tensor mv(const Tensor& input, const Tensor& vec);
TERCEL_API const Tensor& mv_out(const Tensor& out, const Tensor& input, const Tensor& vec);
/** The sum of the products of two vectors' elements; integers too, which wrap. */
TERCEL_OP_API(method, python) Tensor dot(const Tensor& input, const Tensor& tensor);
TERCEL_API const Tensor& dot_out(const Tensor& out, const Tensor& input, const Tensor& tensor);
/** dot() with the first vector conjugated, which of real numbers is the same. */
TERCEL_OP_API(method, python) Tensor vdot(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& vdot_out(const Tensor& out, const Tensor& a, const Tensor& b);
/** input [n] times vec2 [m] as a column and a row; any dtypes, promoted. */
TERCEL_OP_API(method, python) Tensor outer(const Tensor& input, const Tensor& vec2);
TERCEL_API const Tensor& outer_out(const Tensor& out, const Tensor& input, const Tensor& vec2);
/** outer(). */
TERCEL_OP_API(method, python, out) Tensor ger(const Tensor& input, const Tensor& vec2);

// beta * x + alpha * product, x broadcast to the product's shape. With beta = 0 x is not read: NaN in it is lost.
/** The product of matrices. */
TERCEL_OP_API(method, python, autocast_lower, keyword = beta)
Tensor addmm(const Tensor& x, const Tensor& mat1, const Tensor& mat2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method, python_method, keyword = beta)
const Tensor& addmm_(const Tensor& x, const Tensor& mat1, const Tensor& mat2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& addmm_out(const Tensor& out, const Tensor& x, const Tensor& mat1, const Tensor& mat2,
                                   Scalar beta = 1, Scalar alpha = 1);
/** The product of a matrix and a vector. */
TERCEL_OP_API(method, python, keyword = beta)
Tensor addmv(const Tensor& x, const Tensor& mat, const Tensor& vec, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method, python_method, keyword = beta)
const Tensor& addmv_(const Tensor& x, const Tensor& mat, const Tensor& vec, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& addmv_out(const Tensor& out, const Tensor& x, const Tensor& mat, const Tensor& vec,
                                   Scalar beta = 1, Scalar alpha = 1);
/** The outer product of vectors; any dtypes, promoted. */
TERCEL_OP_API(method, python, keyword = beta)
Tensor addr(const Tensor& x, const Tensor& vec1, const Tensor& vec2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method, python_method, keyword = beta)
const Tensor& addr_(const Tensor& x, const Tensor& vec1, const Tensor& vec2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& addr_out(const Tensor& out, const Tensor& x, const Tensor& vec1, const Tensor& vec2,
                                  Scalar beta = 1, Scalar alpha = 1);
/** Products of pairs of matrices, as bmm(). */
TERCEL_OP_API(method, python, autocast_lower, keyword = beta)
Tensor baddbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method, python_method, keyword = beta)
const Tensor& baddbmm_(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& baddbmm_out(const Tensor& out, const Tensor& x, const Tensor& batch1, const Tensor& batch2,
                                     Scalar beta = 1, Scalar alpha = 1);
/** The sum of the products of pairs of matrices. */
TERCEL_OP_API(method, python, autocast_lower, keyword = beta)
Tensor addbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method, python_method, keyword = beta)
const Tensor& addbmm_(const Tensor& x, const Tensor& batch1, const Tensor& batch2, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& addbmm_out(const Tensor& out, const Tensor& x, const Tensor& batch1, const Tensor& batch2,
                                    Scalar beta = 1, Scalar alpha = 1);

}  // namespace tercel
