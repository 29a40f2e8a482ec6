// Norms of vectors. Dimensions as in reduce.h.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * (sum |x|^p)^(1/p), of floating and complex numbers (RuntimeError): for p = 0 how many are not zero, for p =
 * +-infinity the largest or smallest magnitude. Where it has no derivative the gradient is 0; equal largest ones share
 * it.
 */
TERCEL_OP_API(method, out) Tensor norm(const Tensor& x, double p = 2);
TERCEL_OP_API(method, out) Tensor norm(const Tensor& x, double p, IntSpan dim, bool keepdim = false);

/**
 * x with each slice along `dim` whose p-norm is above maxnorm scaled down to it. RuntimeError unless p > 0, maxnorm >=
 * 0 and x has at least two dimensions.
 */
TERCEL_OP_API(method, out_apart) Tensor renorm(const Tensor& x, double p, int64_t dim, double maxnorm);
TERCEL_OP_API(method) const Tensor& renorm_(const Tensor& x, double p, int64_t dim, double maxnorm);

}  // namespace tercel
