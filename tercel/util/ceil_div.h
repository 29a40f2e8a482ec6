// Integer division that rounds up.
#pragma once

#include <concepts>
#include <type_traits>

#include "tercel/util/macros.h"

namespace tercel {

/** a / b rounded up; a >= 0, b > 0. No sum overflows. */
template <std::integral A, std::integral B>
TERCEL_ALWAYS_INLINE constexpr std::common_type_t<A, B> ceil_div(A a, B b) {
  return a / b + (a % b != 0);
}

/** The smallest multiple of b that is at least a; a >= 0, b > 0. */
template <std::integral A, std::integral B>
TERCEL_ALWAYS_INLINE constexpr std::common_type_t<A, B> round_up(A a, B b) {
  return ceil_div(a, b) * b;
}

}  // namespace tercel
