// Elements left out at random.
#pragma once

#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Each element of floating x is zero with probability p (in [0, 1]; RuntimeError), else x / (1 - p). Which ones is
 * decided by the generator's state and the element's index alone, not by threads or instruction set. Not training: x
 * itself.
 */
TERCEL_API Tensor dropout(const Tensor& x, double p = 0.5, bool training = true,
                          Generator& generator = default_generator());

}  // namespace tercel
