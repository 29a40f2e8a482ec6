// Products of matrices and vectors.
//
// Operands have one dtype, float32 or float64, and any strides; vectors and matrices of other dtypes raise
// NotImplementedError, unless stated otherwise. Variants that end in `_` overwrite the first operand and are recorded;
// variants in _out write to a tensor of the result's shape and are not.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** a [n, k] times b [k, m]. */
TERCEL_OP_API(method, autocast_lower) Tensor mm(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& mm_out(const Tensor& out, const Tensor& a, const Tensor& b);
/** Batched matrix product: a [batch, n, k], b [batch, k, m]. */
TERCEL_OP_API(method, autocast_lower) Tensor bmm(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& bmm_out(const Tensor& out, const Tensor& a, const Tensor& b);
/** Vector, matrix and batched products by NumPy's rules: a vector is a row (on the left) or a column (on the right). */
TERCEL_OP_API(method, autocast_lower) Tensor matmul(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& matmul_out(const Tensor& out, const Tensor& a, const Tensor& b);
/** a [n, k] times v [k]. */
TERCEL_OP_API(method) Tensor mv(const Tensor& a, const Tensor& v);
TERCEL_API const Tensor& mv_out(const Tensor& out, const Tensor& a, const Tensor& v);
/** The inner product of two vectors; also for integers, which wrap. */
TERCEL_OP_API(method) Tensor dot(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& dot_out(const Tensor& out, const Tensor& a, const Tensor& b);
/** dot() with the first vector conjugated; the same as dot() for real numbers. */
TERCEL_OP_API(method) Tensor vdot(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& vdot_out(const Tensor& out, const Tensor& a, const Tensor& b);
/** The outer product of a [n] and b [m]; any dtypes, promoted. */
TERCEL_OP_API(method) Tensor outer(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& outer_out(const Tensor& out, const Tensor& a, const Tensor& b);
/** Alias of outer(). */
TERCEL_OP_API(method) Tensor ger(const Tensor& a, const Tensor& b);

// beta * x + alpha * product, with x broadcast to the product's shape. With beta = 0 x is not read, even if NaN.
/** The product is a b of matrices. */
TERCEL_OP_API(method, autocast_lower)
Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method)
const Tensor& addmm_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& addmm_out(const Tensor& out, const Tensor& x, const Tensor& a, const Tensor& b,
                                   Scalar beta = 1, Scalar alpha = 1);
/** The product is that of a matrix and a vector. */
TERCEL_OP_API(method)
Tensor addmv(const Tensor& x, const Tensor& a, const Tensor& v, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method)
const Tensor& addmv_(const Tensor& x, const Tensor& a, const Tensor& v, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& addmv_out(const Tensor& out, const Tensor& x, const Tensor& a, const Tensor& v,
                                   Scalar beta = 1, Scalar alpha = 1);
/** The product is the outer product of vectors; any dtypes, promoted. */
TERCEL_OP_API(method) Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method)
const Tensor& addr_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& addr_out(const Tensor& out, const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1,
                                  Scalar alpha = 1);
/** The product is batched, as in bmm(). */
TERCEL_OP_API(method, autocast_lower)
Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method)
const Tensor& baddbmm_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& baddbmm_out(const Tensor& out, const Tensor& x, const Tensor& a, const Tensor& b,
                                     Scalar beta = 1, Scalar alpha = 1);
/** The product is the sum over the batch of bmm(). */
TERCEL_OP_API(method, autocast_lower)
Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
TERCEL_OP_API(method)
const Tensor& addbmm_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
TERCEL_API const Tensor& addbmm_out(const Tensor& out, const Tensor& x, const Tensor& a, const Tensor& b,
                                    Scalar beta = 1, Scalar alpha = 1);

}  // namespace tercel
