// Arguments of the kernels of the norm of gradients.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"

namespace tercel {

/** n numbers of float32 or float64, whose magnitudes count as at most `limit`. */
struct SquaredNumbers {
  ScalarType dtype;
  const void* data;
  int64_t n;
  double limit;
};
/** The sum of their squares in float64; NaN if one is NaN. */
using SumSquaresFn = double(const SquaredNumbers& numbers);

TERCEL_DECLARE_KERNELS(SumSquaresFn, sum_squares)

}  // namespace tercel
