// Products of matrices, and layers of them.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** a [n, k] times b [k, m]; both float32 or both float64, any strides. */
TERCEL_API Tensor mm(const Tensor& a, const Tensor& b);
/** Products of pairs: a [batch, n, k], b [batch, k, m]. */
TERCEL_API Tensor bmm(const Tensor& a, const Tensor& b);
/** beta * x + alpha * (a b), x broadcast to [n, m]. */
TERCEL_API Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
/** Vector, matrix and batched products by NumPy's rules: vectors count as row (left) or column (right). */
TERCEL_API Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace tercel
