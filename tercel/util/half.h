// IEEE 754 binary16 as a storage type: compute in float, store in Half.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "tercel/util/macros.h"

namespace tercel {

namespace detail {

/** Nearest half, ties to even; NaN stays NaN, made quiet, with the top of its payload (as VCVTPS2PH does). */
TERCEL_HD constexpr uint16_t half_bits_from_float(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t result = 0;
  if (magnitude > 0x7f800000u) {
    result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 65536 and up
    result = 0x7c00u;
  } else if (magnitude >=
             0x38800000u) {  // 2^-14 and up: normal; the carry of rounding may reach the exponent, up to inf
    result = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
  } else if (magnitude >= 0x33000000u) {  // 2^-25 and up: subnormal, in units of 2^-24
    const uint32_t shift = 126u - (magnitude >> 23);
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t rest = mantissa & ((1u << shift) - 1u);
    const uint32_t tie = 1u << (shift - 1u);
    result = mantissa >> shift;
    result += static_cast<uint32_t>(rest > tie || (rest == tie && (result & 1u) != 0));
  }
  return static_cast<uint16_t>(sign | result);
}

/** Exact; a signalling NaN becomes quiet. */
TERCEL_HD constexpr float float_from_half_bits(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  uint32_t bits = sign | (mantissa << 13);
  if (exponent == 0x1f)
    bits |= 0x7f800000u | (mantissa != 0 ? 0x400000u : 0u);
  else
    bits |= (exponent + 112u) << 23;
  return __builtin_bit_cast(float, bits);
}

}  // namespace detail

/** 16-bit float: 5 bits of exponent, 10 of mantissa. Arithmetic happens in float; storing back is explicit. */
struct Half {
  uint16_t bits;

  Half() = default;
  TERCEL_HD constexpr explicit Half(float value) : bits(detail::half_bits_from_float(value)) {}
  /** Other types go through float, as they do in PyTorch. */
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, float>) TERCEL_HD constexpr explicit Half(T value)
      : Half(static_cast<float>(value)) {}
  TERCEL_HD static constexpr Half from_bits(uint16_t bits) {
    Half half{};
    half.bits = bits;
    return half;
  }
  TERCEL_HD constexpr operator float() const { return detail::float_from_half_bits(bits); }
};
static_assert(sizeof(Half) == 2 && std::is_trivial_v<Half>);

}  // namespace tercel

template <>
struct std::numeric_limits<tercel::Half> {
  using Half = tercel::Half;
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true;
  static constexpr bool is_iec559 = true, is_bounded = true, is_modulo = false, traps = false, tinyness_before = false;
  static constexpr auto round_style = std::round_to_nearest;
  static constexpr int radix = 2, digits = 11, digits10 = 3, max_digits10 = 5;
  static constexpr int min_exponent = -13, min_exponent10 = -4, max_exponent = 16, max_exponent10 = 4;
  static constexpr Half min() noexcept { return Half::from_bits(0x0400); }
  static constexpr Half lowest() noexcept { return Half::from_bits(0xfbff); }
  static constexpr Half max() noexcept { return Half::from_bits(0x7bff); }
  static constexpr Half epsilon() noexcept { return Half::from_bits(0x1400); }
  static constexpr Half round_error() noexcept { return Half::from_bits(0x3800); }
  static constexpr Half infinity() noexcept { return Half::from_bits(0x7c00); }
  static constexpr Half quiet_NaN() noexcept { return Half::from_bits(0x7e00); }
  static constexpr Half signaling_NaN() noexcept { return Half::from_bits(0x7d00); }
  static constexpr Half denorm_min() noexcept { return Half::from_bits(0x0001); }
};
