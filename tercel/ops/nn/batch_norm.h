// Normalization over the batch. 16-bit floats are calculated in float32.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

struct BatchNormOptions {
  /** Normalise by this batch's mean and variance, and move the running ones towards them; else by the running ones. */
  bool training = false;
  /** running = (1 - momentum) * running + momentum * this batch's. */
  double momentum = 0.1;
  double eps = 1e-5;
};

/**
 * (x - mean) / sqrt(var + eps) * weight + bias for each channel, dimension 1 of x [n, channels, ...]. Statistics,
 * weight and bias are [channels]; running ones may be undefined in training, weight and bias always. The running
 * variance is the unbiased one. RuntimeError when a batch in training holds one value a channel.
 */
TERCEL_API Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                             const Tensor& weight = {}, const Tensor& bias = {}, const BatchNormOptions& options = {});

}  // namespace tercel
