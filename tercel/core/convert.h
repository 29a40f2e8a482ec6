// Conversion of one element between any two dtypes, used by kernels and scalars.
//
// Note [Conversions]
// Every conversion is defined. To bool: whether it is not zero (true for NaN). Between integers: modulo 2^bits. From
// floating to integer: truncated, saturated outside the range, NaN becomes 0. Float16 and BFloat16 go through float32
// in both directions; rounding is to nearest, ties to even. A complex number loses its imaginary part when converted to
// a real one; as a bool it is true if either part is not zero.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "tercel/util/bfloat16.h"
#include "tercel/util/complex.h"
#include "tercel/util/half.h"
#include "tercel/util/macros.h"

namespace tercel {

namespace detail {

/** Floating to integer, without branches or undefined casts, so that loops are vectorised. */
template <class To, class From>
TERCEL_HD constexpr To saturate(From x) {
  // Narrow types go through int32, for which there are instructions.
  using Wide = std::conditional_t<sizeof(To) < 4, int32_t, To>;
  constexpr int kBits = std::numeric_limits<To>::digits;
  constexpr int kDropped = kBits > std::numeric_limits<From>::digits ? kBits - std::numeric_limits<From>::digits : 0;
  constexpr To kMax = std::numeric_limits<To>::max();
  constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
  // The highest number of type From that fits.
  constexpr From kTop = static_cast<From>((kMax >> kDropped) << kDropped);
  const From clipped = x > kLow ? (x < kTop ? x : kTop) : kLow;
  const To whole = static_cast<To>(static_cast<Wide>(clipped));
  return x > kTop ? kMax : (x == x ? whole : To{0});
}

}  // namespace detail

/** x as a To; see Note [Conversions]. */
template <class To, class From>
TERCEL_HD constexpr To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (is_complex_number<From>) {
    if constexpr (is_complex_number<To>) {
      return To(x);
    } else if constexpr (std::is_same_v<To, bool>) {
      return x != From(0);
    } else {
      return convert<To>(x.re);
    }
  } else if constexpr (is_complex_number<To>) {
    return To(convert<decltype(To::re)>(x));
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return detail::saturate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace tercel
