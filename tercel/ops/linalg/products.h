// Products composed of matrix and elementwise products. All are differentiable through these ops.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/linalg/matmul.h"

namespace tercel {

/** Inner products over the last dimension of both: a [..., k], b [...', k] give [..., ...']; scalars multiply. */
TERCEL_OP_API(method, python, autocast_lower) Tensor inner(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& inner_out(const Tensor& out, const Tensor& a, const Tensor& b);
/** Contracts the last `dims` dimensions of a with the first of b. */
TERCEL_OP_API(out, autocast_lower) Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims = 2);
/** Contracts dims_self[i] of a with dims_other[i] of b; a's remaining dimensions come before those of b. */
TERCEL_OP_API(python_hidden, out, autocast_lower)
Tensor tensordot(const Tensor& a, const Tensor& b, IntSpan dims_self, IntSpan dims_other);
/** Kronecker product: every element of a times all of b; sizes multiply. */
TERCEL_OP_API(method, python, out_apart) Tensor kron(const Tensor& a, const Tensor& b);
/** Cross product of vectors of 3 elements along a dimension; the other dimensions are broadcast. */
TERCEL_OP_API(method, out_apart) Tensor cross(const Tensor& a, const Tensor& b, int64_t dim = -1);
/** sum_ij input1_i weight_oij input2_j + bias_o: input1 [..., n], input2 [..., m], weight [out, n, m], bias [out] or
 * undefined. */
TERCEL_OP_API(python, python_nn)
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = Tensor());
/** The product of matrices, evaluated in the cheapest order. */
TERCEL_OP_API(python_hidden, out, autocast_lower) Tensor chain_matmul(Span<Tensor> matrices);
/** a [..., n, n] to an integer power; negative powers are those of the inverse. */
TERCEL_OP_API(method, out) Tensor matrix_power(const Tensor& a, int64_t n);
/**
 * Covariances of the rows of x [variables, observations] (a vector is one variable), divided by count - correction.
 * Integers fweights [observations] repeat observations, aweights weight them; both may be undefined.
 */
TERCEL_OP_API(method)
Tensor cov(const Tensor& x, int64_t correction = 1, const Tensor& fweights = Tensor(),
           const Tensor& aweights = Tensor());
/** Correlation coefficients: cov() divided by the products of standard deviations, clamped to [-1, 1]. */
TERCEL_OP_API(method) Tensor corrcoef(const Tensor& x);

namespace linalg {

/** The product of two or more matrices, evaluated in the cheapest order; the first and the last may be vectors. */
TERCEL_OP_API(python, out, autocast_lower) Tensor multi_dot(Span<Tensor> tensors);
/** Inner products along a dimension, with a conjugated; the other dimensions are broadcast. */
TERCEL_OP_API(out, autocast_lower) Tensor vecdot(const Tensor& a, const Tensor& b, int64_t dim = -1);
using tercel::cross;
using tercel::matmul;
using tercel::matrix_power;
/** Writes to `out`, by the rules of torch.linalg. */
TERCEL_API const Tensor& cross_out(const Tensor& out, const Tensor& a, const Tensor& b, int64_t dim = -1);
TERCEL_API const Tensor& matmul_out(const Tensor& out, const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& matrix_power_out(const Tensor& out, const Tensor& a, int64_t n);

}  // namespace linalg

}  // namespace tercel
