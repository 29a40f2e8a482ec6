// Positions of nonzero elements, and selection by masks.
#pragma once

#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/** Indices [n, x.dim()] int64 of the n nonzero elements (including NaN), in row-major order. */
TERCEL_OP_API(method, out_apart) Tensor nonzero(const Tensor& x);
/** The same as one vector [n] per dimension; a scalar counts as a vector of one element. */
TERCEL_API std::vector<Tensor> nonzero_tuple(const Tensor& x);
/** Like nonzero(), also for a scalar: [0 or 1, 0]. */
TERCEL_OP_API(method, python) Tensor argwhere(const Tensor& x);
/** The elements of x where mask (bool) is true, in row-major order, [n]; both are broadcast. */
TERCEL_OP_API(method, out_apart) Tensor masked_select(const Tensor& x, const Tensor& mask);

}  // namespace tercel
