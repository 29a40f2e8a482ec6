// Exponentials that add up to one. 16-bit floats are calculated in float32.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** exp(x) / sum(exp(x)) along a dimension, without overflow. Floating x (TypeError). */
TERCEL_API Tensor softmax(const Tensor& x, int64_t dim);
/** x - log(sum(exp(x))) along a dimension, without overflow. Floating x (TypeError). */
TERCEL_API Tensor log_softmax(const Tensor& x, int64_t dim);

}  // namespace tercel
