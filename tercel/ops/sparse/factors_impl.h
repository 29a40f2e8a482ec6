// What products of sparse matrices of all layouts share.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel::sparse_ops {

/** Errors, in PyTorch's words for their layouts, unless both are matrices of one dtype that can be multiplied. */
void check_factors(const Tensor& a, const Tensor& b);
/** The transpose, conjugated if complex; of a compressed layout over the same indices. Recorded. */
Tensor adjoint_of(const Tensor& x);
/** product * alpha; the product itself if alpha is 1. */
Tensor scaled(const Tensor& product, Scalar alpha);
/** beta * input + product; for beta = 0 elements of `input` are not read, so that infinities and NaN are ignored. */
Tensor added(const Tensor& input, const Tensor& product, Scalar beta);

}  // namespace tercel::sparse_ops
