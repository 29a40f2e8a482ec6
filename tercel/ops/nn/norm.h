// Normalization of individual samples. 16-bit floats are calculated in float32; weight and bias may be undefined. Wrong
// sizes raise RuntimeError with PyTorch's message.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

/** (x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, whose sizes are normalized_shape. */
TERCEL_OP_API(python, python_nn)
Tensor layer_norm(const Tensor& x, IntSpan normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
/** x / sqrt(mean(x^2) + eps) * weight, for any real dtype; eps defaults to the epsilon of x's dtype. */
TERCEL_OP_API(python, python_nn)
Tensor rms_norm(const Tensor& x, IntSpan normalized_shape, const Tensor& weight = {}, std::optional<double> eps = {});
/** Normalises x [n, channels, ...] over groups of channels. weight and bias are [channels]. */
TERCEL_OP_API(python, python_nn)
Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
/**
 * Normalises x [n, channels, ...] per channel of each sample. With use_input_stats, running statistics [channels], if
 * given, are updated with the mean over samples; without it they are used instead of the samples' statistics.
 */
TERCEL_OP_API(python_nn)
Tensor instance_norm(const Tensor& x, const Tensor& running_mean = {}, const Tensor& running_var = {},
                     const Tensor& weight = {}, const Tensor& bias = {}, bool use_input_stats = true,
                     double momentum = 0.1, double eps = 1e-5);
/** x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta, x [n, channels, ...]. */
TERCEL_OP_API(python_nn)
Tensor local_response_norm(const Tensor& x, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);

}  // namespace tercel
