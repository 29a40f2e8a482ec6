#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"

namespace tercel {

/**
 * Images as [outer][in pixels][inner]: channels are the outer or the inner dimension. Output i of dimension d reads
 * count[d][i] inputs (at least one), start[d][i], start[d][i] + step[d], ...
 */
struct MaxPoolLoop {
  ScalarType dtype;  ///< float32, float64 or int64
  int64_t inner;
  int64_t in[3], out[3], step[3];
  const int64_t* start[3];
  const int64_t* count[3];
  const void* x;
  void* out_values;
  int64_t* indices;  ///< flat index of the maximum in its image; or null
};
/** Output rows [begin, end) of outer * out[0] * out[1]. scratch: in[2] * inner values, and as many int32. */
using MaxPoolFn = void(const MaxPoolLoop& loop, void* scratch, int64_t begin, int64_t end);

/** x_grad[outer][index][inner] += grad[outer][position][inner], after x_grad = 0. */
struct MaxPoolBackwardLoop {
  bool wide;
  int64_t inner, in_pixels, out_pixels;
  const void* grad;
  const int64_t* indices;
  void* x_grad;
};
/** Images [begin, end). */
using MaxPoolBackwardFn = void(const MaxPoolBackwardLoop& loop, int64_t begin, int64_t end);

/**
 * A linear map along each dimension, stored by rows: output i of dimension d is the sum of weight[d][t] times input
 * index[d][t] for t in [begin[d][i], begin[d][i + 1]).
 */
struct SeparableResizeLoop {
  bool wide;
  int64_t inner;
  int64_t in[3], out[3];
  const int64_t* begin[3];
  const int64_t* index[3];
  const void* weight[3];  ///< of the elements' type
  bool whole;             ///< outputs are sums over whole images
  double divisor;         ///< divides the result
  const void* x;
  void* out_values;
};
/** Output rows [begin, end) of outer * out[0] * out[1]. scratch: in[2] * inner values. */
using SeparableResizeFn = void(const SeparableResizeLoop& loop, void* scratch, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(MaxPoolFn, max_pool)
TERCEL_DECLARE_KERNELS(MaxPoolBackwardFn, max_pool_backward)
TERCEL_DECLARE_KERNELS(SeparableResizeFn, separable_resize_dim)

}  // namespace tercel
