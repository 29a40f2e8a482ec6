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

/** dropout() of whole channels: of x [n, channels, ...], at least 2 dimensions (RuntimeError), slices [i, c]. */
TERCEL_API Tensor feature_dropout(const Tensor& x, double p = 0.5, bool training = true,
                                  Generator& generator = default_generator());

/**
 * Dropout that goes with selu(): an element is selu()'s limit far below zero with probability p, and all are then moved
 * and scaled, so that mean 0 and variance 1 stay (Klambauer et al. 2017, section 3). p as in dropout().
 */
TERCEL_API Tensor alpha_dropout(const Tensor& x, double p = 0.5, bool training = true,
                                Generator& generator = default_generator());
/** alpha_dropout() of whole channels, as in feature_dropout(). */
TERCEL_API Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5, bool training = true,
                                        Generator& generator = default_generator());

}  // namespace tercel
