// Dropout.
#pragma once

#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Each element of floating x becomes zero with probability p (in [0, 1]; RuntimeError), else x / (1 - p). The choice
 * depends only on the generator's state and the element's index, not on threads or instruction set. Returns x itself if
 * not training.
 */
TERCEL_API Tensor dropout(const Tensor& x, double p = 0.5, bool training = true,
                          Generator& generator = default_generator());

/** An endless mask, without state: whether a position is dropped depends on it, the probability, seed and stream. */
struct DropoutMask {
  uint64_t seed = 0;
  uint64_t stream = 0;
  int64_t first = 0;  ///< position of the tensor's first element; the others follow in row-major order
};
/**
 * dropout() in training by positions of a mask, so that parts of a tensor have the parts of its mask, whoever computes
 * them. RuntimeError for positions outside [0, 2^63).
 */
TERCEL_API Tensor dropout(const Tensor& x, double p, const DropoutMask& mask);

/** dropout() of entire channels: slices [i, c] of x [n, channels, ...], at least 2 dimensions (RuntimeError). */
TERCEL_API Tensor feature_dropout(const Tensor& x, double p = 0.5, bool training = true,
                                  Generator& generator = default_generator());

/**
 * Dropout for selu(): with probability p an element becomes selu()'s negative saturation value, and all elements are
 * then shifted and scaled to preserve mean 0 and variance 1 (Klambauer et al. 2017, section 3). p as in dropout().
 */
TERCEL_API Tensor alpha_dropout(const Tensor& x, double p = 0.5, bool training = true,
                                Generator& generator = default_generator());
/** alpha_dropout() of entire channels, as in feature_dropout(). */
TERCEL_API Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5, bool training = true,
                                        Generator& generator = default_generator());

}  // namespace tercel
