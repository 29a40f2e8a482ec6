#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel {

/**
 * x, float or double, is [images][channels][pixels], or with channels last [images][pixels][channels]; all other arrays
 * are [channels]. A channel's sums have the same bits in both orders.
 */
struct BatchNormLoop {
  Compute compute;
  bool channels_last;
  int64_t images, channels, pixels;
  const void* x;
  const void* weight;  ///< or null
  const void* bias;    ///< or null
  void* mean;
  void* inverse_std;
  void* var;  ///< biased; written by batch_norm_statistics
  double eps;
  const void* grad;  ///< backward: gradient of the result
  void* out;         ///< shaped like x; backward: the gradient of x
  /// Backward: sums of grad, and of grad times the normalised x; then what is subtracted from each gradient of x: a
  /// constant, and a factor of the distance from the mean; null if mean and variance do not depend on x.
  void* grad_sum;
  void* grad_dot;
  void* shift;
  void* slope;
};
using BatchNormFn = void(const BatchNormLoop& loop, int64_t begin, int64_t end);

/** Minimum number of channels per task: a cache line. */
constexpr int64_t kBatchNormChannels = 16;

/** mean, var and inverse_std of channels [begin, end) from x */
TERCEL_DECLARE_KERNELS(BatchNormFn, batch_norm_statistics)
/** grad_sum and grad_dot of channels [begin, end) */
TERCEL_DECLARE_KERNELS(BatchNormFn, batch_norm_sums)
/** out for rows [begin, end): a row is a channel of an image, or with channels last a pixel */
TERCEL_DECLARE_KERNELS(BatchNormFn, batch_norm)
TERCEL_DECLARE_KERNELS(BatchNormFn, batch_norm_backward)

}  // namespace tercel
