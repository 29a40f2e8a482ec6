// Products that are made of matrix products and elementwise ones. All are differentiable through what they are made of.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/linalg/matmul.h"

namespace tercel {

/** Sums of products over the last dimension of both: a [..., k], b [...', k] give [..., ...']; scalars multiply. */
TERCEL_OP_API(method, python, autocast_lower) Tensor inner(const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& inner_out(const Tensor& out, const Tensor& a, const Tensor& b);
/** Sums of products over the last `dims` dimensions of a and the first of b. */
TERCEL_OP_API(out, autocast_lower) Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims = 2);
/** Sums of products over dims_self[i] of a and dims_other[i] of b; what is left of a comes before what is left of b. */
TERCEL_OP_API(python_hidden, out, autocast_lower)
Tensor tensordot(const Tensor& a, const Tensor& b, IntSpan dims_self, IntSpan dims_other);
/** Every element of a times the whole of b: sizes multiply. */
TERCEL_OP_API(method, python, out_apart) Tensor kron(const Tensor& a, const Tensor& b);
/** Cross product of vectors of 3 elements along a dimension; the other dimensions are broadcast. */
TERCEL_OP_API(method, out_apart) Tensor cross(const Tensor& a, const Tensor& b, int64_t dim = -1);
/** sum_ij input1_i weight_oij input2_j + bias_o: input1 [..., n], input2 [..., m], weight [out, n, m], bias [out] or
 * undefined. */
TERCEL_OP_API(python, python_nn)
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = Tensor());
/** The product of matrices in the cheapest order. */
TERCEL_OP_API(python_hidden, out, autocast_lower) Tensor chain_matmul(Span<Tensor> matrices);
/** a [..., n, n] to a whole power; a negative one is that of the inverse. */
TERCEL_OP_API(method, python, out) Tensor matrix_power(const Tensor& a, int64_t n);
/**
 * Covariances of the rows of x [variables, observations] (a vector is one variable), over count - correction. Whole
 * numbers fweights [observations] repeat observations, aweights weight them; both may be undefined.
 */
TERCEL_OP_API(method, python, keyword = correction)
Tensor cov(const Tensor& x, int64_t correction = 1, const Tensor& fweights = Tensor(),
           const Tensor& aweights = Tensor());
/** cov() over the products of the standard deviations, within [-1, 1]. */
TERCEL_OP_API(method, python) Tensor corrcoef(const Tensor& x);

namespace linalg {

/** The product of two or more matrices in the cheapest order; the first and the last may be vectors. */
TERCEL_OP_API(python, out, autocast_lower) Tensor multi_dot(Span<Tensor> tensors);
/** Sums of products along a dimension, a conjugated; the other dimensions are broadcast. */
TERCEL_OP_API(out, autocast_lower) Tensor vecdot(const Tensor& a, const Tensor& b, int64_t dim = -1);
using tercel::cross;
using tercel::matmul;
using tercel::matrix_power;
/** Into `out`, by the rules of linear algebra. */
TERCEL_API const Tensor& cross_out(const Tensor& out, const Tensor& a, const Tensor& b, int64_t dim = -1);
TERCEL_API const Tensor& matmul_out(const Tensor& out, const Tensor& a, const Tensor& b);
TERCEL_API const Tensor& matrix_power_out(const Tensor& out, const Tensor& a, int64_t n);

}  // namespace linalg

}  // namespace tercel
