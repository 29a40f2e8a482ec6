// Integer division that rounds up.
#pragma once

#include <concepts>

#include "tercel/util/macros.h"

namespace tercel {

/** a / b rounded up, of a >= 0 and b > 0. */
template <std::integral T>
TERCEL_ALWAYS_INLINE constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

/** The least multiple of b that is not less than a, of a >= 0 and b > 0. */
template <std::integral T>
TERCEL_ALWAYS_INLINE constexpr T round_up(T a, T b) {
  return ceil_div(a, b) * b;
}

}  // namespace tercel
