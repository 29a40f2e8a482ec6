#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/ops/loop.h"

namespace tercel {

/** x [n, channels], float or double; all else [channels]. */
struct BatchNormLoop {
  Compute compute;
  int64_t n, channels;
  const void* x;
  const void* weight;  ///< or null
  const void* bias;    ///< or null
  void* mean;
  void* inverse_std;
  void* var;  ///< biased; written by the statistics
  double eps;
  bool training;  ///< backward: mean and variance depend on x
  const void* grad;
  void* out;  ///< [n, channels]; backward: the gradient of x, or null
  void* weight_grad;
  void* bias_grad;
};
/** Strips of channels [begin, end). */
using BatchNormFn = void(const BatchNormLoop& loop, int64_t begin, int64_t end);

/** Channels of a strip: some lines of a row, so that memory is read in order, and sums stay in the L1 cache. */
constexpr int64_t kBatchNormStrip = 128;

/** mean, var and inverse_std from x */
TERCEL_DECLARE_KERNELS(BatchNormFn, batch_norm_statistics)
TERCEL_DECLARE_KERNELS(BatchNormFn, batch_norm)
TERCEL_DECLARE_KERNELS(BatchNormFn, batch_norm_backward)

}  // namespace tercel
