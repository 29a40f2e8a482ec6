#include "tercel/util/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "tercel/util/cpu_info.h"

namespace tercel {
namespace {

// The value of 16 bits by the definition of the format.
double meaning(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  double magnitude = 0;
  if (exponent == 31)
    magnitude = mantissa != 0 ? std::nan("") : INFINITY;
  else if (exponent == 0)
    magnitude = std::ldexp(mantissa, -24);
  else
    magnitude = std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }

TEST(Half, EveryHalfConvertsExactlyAndBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const Half half = Half::from_bits(static_cast<uint16_t>(bits));
    const double expected = meaning(half.bits);
    const float value = half;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      // Sign and payload survive; a signalling NaN becomes quiet.
      ASSERT_EQ(Half(value).bits, bits | 0x0200) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), expected) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    ASSERT_EQ(Half(value).bits, bits);
  }
}

// Rounding is monotonic, so the floats at and around each boundary decide all 2^32: between two neighbours, their exact
// middle goes to the even one and the floats next to it to either side.
TEST(Half, EveryRoundingBoundaryIsRight) {
  for (uint32_t low = 0; low < 0x7c00; ++low) {
    const auto a = static_cast<uint16_t>(low), b = static_cast<uint16_t>(low + 1);
    const double above = b == 0x7c00 ? 65536.0 : meaning(b);
    const auto middle = static_cast<float>((meaning(a) + above) / 2);
    ASSERT_EQ(static_cast<double>(middle), (meaning(a) + above) / 2)
        << "a midpoint has one more bit, which fits a float";
    const uint16_t even = (a & 1) == 0 ? a : b;
    ASSERT_EQ(Half(middle).bits, even) << low;
    ASSERT_EQ(Half(std::nextafter(middle, 0.0f)).bits, a) << low;
    ASSERT_EQ(Half(std::nextafter(middle, INFINITY)).bits, b) << low;
    ASSERT_EQ(Half(-middle).bits, even | 0x8000) << low;
    ASSERT_EQ(Half(-std::nextafter(middle, 0.0f)).bits, a | 0x8000) << low;
    ASSERT_EQ(Half(-std::nextafter(middle, INFINITY)).bits, b | 0x8000) << low;
  }
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("f16c"))) uint16_t hardware_half(float value) {
  using Float4 __attribute__((vector_size(16))) = float;
  using Short8 __attribute__((vector_size(16))) = short;
  const Short8 result = __builtin_ia32_vcvtps2ph(Float4{value, 0, 0, 0}, 0);
  return static_cast<uint16_t>(result[0]);
}

TEST(Half, AgreesWithTheProcessor) {
  if (!has_avx2()) GTEST_SKIP() << "only AVX2 is sure to bring F16C";
  // A prime stride visits all exponents with ever different mantissas; TERCEL_EXHAUSTIVE visits every float.
  const uint64_t stride = std::getenv("TERCEL_EXHAUSTIVE") != nullptr ? 1 : 251;
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += stride) {
    const float value = float_of(static_cast<uint32_t>(bits));
    ASSERT_EQ(detail::half_bits_from_float(value), hardware_half(value)) << std::hex << bits;
  }
}
#endif

TEST(Half, SpecialValues) {
  EXPECT_EQ(Half(INFINITY).bits, 0x7c00);
  EXPECT_EQ(Half(-INFINITY).bits, 0xfc00);
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(Half(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(bits_of(Half::from_bits(0x7d55)), 0x7feaa000u) << "signalling NaN: quiet, payload kept";
}

TEST(Half, OtherTypesGoThroughFloat) {
  EXPECT_EQ(Half(3).bits, Half(3.0f).bits);
  EXPECT_EQ(Half(0.1).bits, Half(0.1f).bits);
  EXPECT_EQ(static_cast<double>(Half(int64_t{100000})), INFINITY);
  EXPECT_EQ(Half(1.5) + Half(2.0), 3.5f);
}

TEST(Half, ConvertsAtCompileTime) {
  static_assert(Half(1.0f).bits == 0x3c00);
  static_assert(static_cast<float>(Half(1.0f)) == 1.0f);
  static_assert(Half(5.9604644775390625e-8f).bits == 1);
}

TEST(Half, NumericLimits) {
  using Limits = std::numeric_limits<Half>;
  EXPECT_EQ(meaning(Limits::max().bits), 65504);
  EXPECT_EQ(meaning(Limits::lowest().bits), -65504);
  EXPECT_EQ(meaning(Limits::min().bits), std::ldexp(1, -14));
  EXPECT_EQ(meaning(Limits::denorm_min().bits), std::ldexp(1, -24));
  EXPECT_EQ(meaning(Limits::epsilon().bits), std::ldexp(1, -10));
  EXPECT_EQ(meaning(Limits::infinity().bits), INFINITY);
  EXPECT_TRUE(std::isnan(meaning(Limits::quiet_NaN().bits)));
  EXPECT_EQ(Half(std::nextafter(1.0f, 2.0f)).bits + 1, Half(1.0f + static_cast<float>(Limits::epsilon())).bits);
}

}  // namespace
}  // namespace tercel
