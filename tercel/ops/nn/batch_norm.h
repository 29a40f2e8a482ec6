// Batch normalization. 16-bit floats are calculated in float32.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

struct BatchNormOptions {
  /** Normalise by the batch's mean and variance and update the running statistics, else by the running statistics. */
  bool training = false;
  /** running = (1 - momentum) * running + momentum * batch statistic. */
  double momentum = 0.1;
  double eps = 1e-5;
};

/**
 * (x - mean) / sqrt(var + eps) * weight + bias per channel, dimension 1 of x [n, channels, ...]. Statistics, weight and
 * bias are [channels]; running statistics may be undefined in training, weight and bias always. The running variance is
 * the unbiased one. RuntimeError if a batch in training has only one value per channel.
 */
TERCEL_API Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                             const Tensor& weight = {}, const Tensor& bias = {}, const BatchNormOptions& options = {});

}  // namespace tercel
