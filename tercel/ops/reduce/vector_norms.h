// Vector norms. Dimensions as in reduce.h.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * (sum |x|^p)^(1/p) of floating or complex numbers (RuntimeError): p = 0 counts nonzero elements, p = +-infinity gives
 * the largest or smallest magnitude. Where the norm is not differentiable the gradient is 0; elements of equal largest
 * magnitude share it.
 */
TERCEL_OP_API(method, out, layout_sparse) Tensor norm(const Tensor& x, double p = 2);
TERCEL_OP_API(method, out, layout_sparse) Tensor norm(const Tensor& x, double p, IntSpan dim, bool keepdim = false);

/**
 * Scales down each slice of x along `dim` whose p-norm exceeds maxnorm to that norm. RuntimeError unless p > 0, maxnorm
 * >= 0 and x has at least two dimensions.
 */
TERCEL_OP_API(method, out_apart) Tensor renorm(const Tensor& x, double p, int64_t dim, double maxnorm);
TERCEL_OP_API(method) const Tensor& renorm_(const Tensor& x, double p, int64_t dim, double maxnorm);

}  // namespace tercel
