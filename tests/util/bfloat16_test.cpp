#include "tercel/util/bfloat16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace tercel {
namespace {

// The value of 16 bits by the definition of the format.
double meaning(uint16_t bits) {
  const int exponent = (bits >> 7) & 255;
  const int mantissa = bits & 127;
  double magnitude = 0;
  if (exponent == 255)
    magnitude = mantissa != 0 ? std::nan("") : INFINITY;
  else if (exponent == 0)
    magnitude = std::ldexp(mantissa, -133);
  else
    magnitude = std::ldexp(128 + mantissa, exponent - 134);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(BFloat16, EveryValueConvertsExactlyAndBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const BFloat16 small = BFloat16::from_bits(static_cast<uint16_t>(bits));
    const double expected = meaning(small.bits);
    const float value = small;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(BFloat16(value).bits, bits | 0x0040) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), expected) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    ASSERT_EQ(BFloat16(value).bits, bits);
  }
}

// As in half_test.cpp: the boundaries decide every float.
TEST(BFloat16, EveryRoundingBoundaryIsRight) {
  for (uint32_t low = 0; low < 0x7f80; ++low) {
    const auto a = static_cast<uint16_t>(low), b = static_cast<uint16_t>(low + 1);
    const double above = b == 0x7f80 ? std::ldexp(1, 128) : meaning(b);
    const auto middle = static_cast<float>((meaning(a) + above) / 2);
    ASSERT_EQ(static_cast<double>(middle), (meaning(a) + above) / 2) << low;
    const uint16_t even = (a & 1) == 0 ? a : b;
    for (const uint16_t sign : {uint16_t{0}, uint16_t{0x8000}}) {
      const float factor = sign != 0 ? -1.0f : 1.0f;
      ASSERT_EQ(BFloat16(factor * middle).bits, even | sign) << low;
      ASSERT_EQ(BFloat16(factor * std::nextafter(middle, 0.0f)).bits, a | sign) << low;
      ASSERT_EQ(BFloat16(factor * std::nextafter(middle, INFINITY)).bits, b | sign) << low;
    }
  }
}

TEST(BFloat16, EveryNanStaysNan) {
  const uint32_t stride = std::getenv("TERCEL_EXHAUSTIVE") != nullptr ? 1 : 13;
  for (uint64_t mantissa = 1; mantissa < (1u << 23); mantissa += stride) {
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const float value = __builtin_bit_cast(float, static_cast<uint32_t>(0x7f800000u | mantissa | sign));
      ASSERT_TRUE(std::isnan(static_cast<float>(BFloat16(value)))) << std::hex << mantissa;
      ASSERT_EQ(BFloat16(value).bits >> 15, sign >> 31);
    }
  }
}

TEST(BFloat16, ConvertsAtCompileTime) {
  static_assert(BFloat16(1.0f).bits == 0x3f80);
  static_assert(static_cast<float>(BFloat16(-2.0f)) == -2.0f);
}

TEST(BFloat16, OtherTypesGoThroughFloat) {
  EXPECT_EQ(BFloat16(3).bits, BFloat16(3.0f).bits);
  EXPECT_EQ(BFloat16(1e300).bits, 0x7f80);
  EXPECT_EQ(BFloat16(1.5) * BFloat16(2), 3.0f);
}

TEST(BFloat16, NumericLimits) {
  using Limits = std::numeric_limits<BFloat16>;
  EXPECT_EQ(meaning(Limits::max().bits), std::ldexp(255, 120));
  EXPECT_EQ(meaning(Limits::lowest().bits), -std::ldexp(255, 120));
  EXPECT_EQ(meaning(Limits::min().bits), std::ldexp(1, -126));
  EXPECT_EQ(meaning(Limits::denorm_min().bits), std::ldexp(1, -133));
  EXPECT_EQ(meaning(Limits::epsilon().bits), std::ldexp(1, -7));
  EXPECT_EQ(meaning(Limits::infinity().bits), INFINITY);
  EXPECT_TRUE(std::isnan(meaning(Limits::quiet_NaN().bits)));
}

}  // namespace
}  // namespace tercel
