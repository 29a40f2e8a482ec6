// Similarities, distances and other small functions of vectors, composed of other ops.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Dot product of x1 and x2 divided by their norms (each at least eps), along a dimension; x1 and x2 are broadcast. */
TERCEL_OP_API(python, python_nn)
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim = 1, double eps = 1e-8);
/** The p-norm of x1 - x2 + eps along the last dimension. */
TERCEL_OP_API(python, python_nn)
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6, bool keepdim = false);
/** x divided by its p-norm along a dimension; the norm is at least eps. */
TERCEL_OP_API(out) Tensor normalize(const Tensor& x, double p = 2, int64_t dim = 1, double eps = 1e-12);
/** First half of a dimension times the sigmoid of the second half. RuntimeError for an odd size. */
TERCEL_OP_API(python_nn, out, no_python_out) Tensor glu(const Tensor& x, int64_t dim = -1);
/** int64 [..., num_classes], 1 at the index given by tensor (int64), else 0; -1: one class more than the largest index.
 */
TERCEL_OP_API(python_nn) Tensor one_hot(const Tensor& tensor, int64_t num_classes = -1);

}  // namespace tercel
