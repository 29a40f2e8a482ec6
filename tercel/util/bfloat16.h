// bfloat16, the upper half of a float, as a storage type: compute in float, store in BFloat16.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "tercel/util/macros.h"

namespace tercel {

namespace detail {

/** Nearest bfloat16, ties to even, subnormals kept; NaN stays NaN, made quiet, with the top of its payload. */
TERCEL_HD constexpr uint16_t bfloat16_bits_from_float(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/** Exact. */
TERCEL_HD constexpr float float_from_bfloat16_bits(uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}

}  // namespace detail

/** 16-bit float: 8 bits of exponent, 7 of mantissa. Arithmetic happens in float; storing back is explicit. */
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  TERCEL_HD constexpr explicit BFloat16(float value) : bits(detail::bfloat16_bits_from_float(value)) {}
  /** Other types go through float, as they do in PyTorch. */
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, float>) TERCEL_HD constexpr explicit BFloat16(T value)
      : BFloat16(static_cast<float>(value)) {}
  TERCEL_HD static constexpr BFloat16 from_bits(uint16_t bits) {
    BFloat16 result{};
    result.bits = bits;
    return result;
  }
  TERCEL_HD constexpr operator float() const { return detail::float_from_bfloat16_bits(bits); }
};
static_assert(sizeof(BFloat16) == 2 && std::is_trivial_v<BFloat16>);

}  // namespace tercel

template <>
struct std::numeric_limits<tercel::BFloat16> {
  using BFloat16 = tercel::BFloat16;
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true;
  static constexpr bool is_iec559 = false, is_bounded = true, is_modulo = false, traps = false, tinyness_before = false;
  static constexpr auto round_style = std::round_to_nearest;
  static constexpr int radix = 2, digits = 8, digits10 = 2, max_digits10 = 4;
  static constexpr int min_exponent = -125, min_exponent10 = -37, max_exponent = 128, max_exponent10 = 38;
  static constexpr BFloat16 min() noexcept { return BFloat16::from_bits(0x0080); }
  static constexpr BFloat16 lowest() noexcept { return BFloat16::from_bits(0xff7f); }
  static constexpr BFloat16 max() noexcept { return BFloat16::from_bits(0x7f7f); }
  static constexpr BFloat16 epsilon() noexcept { return BFloat16::from_bits(0x3c00); }
  static constexpr BFloat16 round_error() noexcept { return BFloat16::from_bits(0x3f00); }
  static constexpr BFloat16 infinity() noexcept { return BFloat16::from_bits(0x7f80); }
  static constexpr BFloat16 quiet_NaN() noexcept { return BFloat16::from_bits(0x7fc0); }
  static constexpr BFloat16 signaling_NaN() noexcept { return BFloat16::from_bits(0x7fa0); }
  static constexpr BFloat16 denorm_min() noexcept { return BFloat16::from_bits(0x0001); }
};
