// Kernels of depthwise convolutions, channels-last.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

/**
 * One image of dense pixels [in...][channels], and one of positions [out...][channels]; weights are stored as
 * [window][channels], so that every vector holds channels. Three spatial dimensions; missing ones have size 1.
 */
struct DepthwiseLoop {
  bool wide;  ///< double, else float
  int64_t channels;
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
};

/** y = x * weight + bias in channels [begin, end); bias may be null. */
using DepthwiseForwardFn = void(const DepthwiseLoop& loop, const void* x, const void* weight, const void* bias, void* y,
                                int64_t begin, int64_t end);
/** x += the gradient of x, from that of y. */
using DepthwiseInputFn = void(const DepthwiseLoop& loop, const void* y, const void* weight, void* x, int64_t begin,
                              int64_t end);
/** weight += the gradient of the weight. */
using DepthwiseWeightFn = void(const DepthwiseLoop& loop, const void* x, const void* y, void* weight, int64_t begin,
                               int64_t end);

TERCEL_DECLARE_KERNELS(DepthwiseForwardFn, depthwise_forward)
TERCEL_DECLARE_KERNELS(DepthwiseInputFn, depthwise_input)
TERCEL_DECLARE_KERNELS(DepthwiseWeightFn, depthwise_weight)

}  // namespace tercel
