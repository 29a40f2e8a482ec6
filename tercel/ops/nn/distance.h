// Pairwise distances between vectors.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** When cdist() uses a matrix product for Euclidean distances: faster, but less accurate for close vectors. */
enum class CdistMode : uint8_t {
  UseMmIfNecessary,  ///< if either side has more than 25 rows
  UseMm,
  DoNotUseMm,
};

/** p-norms of the differences of all rows of a [..., n, d] and b [..., m, d]: [..., n, m]; p >= 0, or infinity. */
TERCEL_OP_API(autocast_f32)
Tensor cdist(const Tensor& a, const Tensor& b, double p = 2, CdistMode mode = CdistMode::UseMmIfNecessary);
/** The same for all pairs of rows i < j of x [n, d], as a vector. */
TERCEL_OP_API(python, python_nn) Tensor pdist(const Tensor& x, double p = 2);
/** The p-norm of a - b, broadcast. */
TERCEL_OP_API(method, out) Tensor dist(const Tensor& a, const Tensor& b, double p = 2);

}  // namespace tercel
