#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel {

/** Contiguous arrays of float or double. */
struct LossLoop {
  Compute compute;
  const void* x;
  const void* target;
  const void* weight;  ///< or null
  void* loss;
  void* grad;  ///< gradient of the loss by x, times scale; or null
  double scale;
};
/** Elements [begin, end). */
using LossFn = void(const LossLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(LossFn, binary_cross_entropy_with_logits)

}  // namespace tercel
