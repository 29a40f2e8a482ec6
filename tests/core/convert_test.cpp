#include "tercel/core/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tercel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

template <class To>
void check_saturation() {
  using Limits = std::numeric_limits<To>;
  for (const double sign : {1.0, -1.0}) {
    const To bound = sign > 0 ? Limits::max() : Limits::min();
    EXPECT_EQ(convert<To>(sign * kInf), bound);
    EXPECT_EQ(convert<To>(sign * 1e30), bound);
    EXPECT_EQ(convert<To>(static_cast<float>(sign * 1e30)), bound);
    EXPECT_EQ(convert<To>(static_cast<float>(sign) * std::numeric_limits<float>::infinity()), bound);
    EXPECT_EQ(convert<To>(std::ldexp(sign, Limits::digits)), bound);
    EXPECT_EQ(convert<To>(static_cast<float>(std::ldexp(sign, Limits::digits))), bound);
  }
  EXPECT_EQ(convert<To>(kNan), To{0});
  EXPECT_EQ(convert<To>(std::numeric_limits<float>::quiet_NaN()), To{0});
  EXPECT_EQ(convert<To>(Half(std::numeric_limits<float>::quiet_NaN())), To{0});
  EXPECT_EQ(convert<To>(99.99), To{99});
  EXPECT_EQ(convert<To>(0.999f), To{0});
  EXPECT_EQ(convert<To>(-0.999), To{0});
  EXPECT_EQ(convert<To>(std::numeric_limits<double>::denorm_min()), To{0});
}

TEST(Convert, FloatingToIntegerTruncatesAndSaturates) {
  check_saturation<int8_t>();
  check_saturation<uint8_t>();
  check_saturation<int16_t>();
  check_saturation<int32_t>();
  check_saturation<int64_t>();
  check_saturation<uint16_t>();
  check_saturation<uint32_t>();
  check_saturation<uint64_t>();
  EXPECT_EQ(convert<uint64_t>(0x1p63), uint64_t{1} << 63);
  EXPECT_EQ(convert<uint64_t>(0x1.fffffffffffffp63), 0xfffffffffffff800);
  EXPECT_EQ(convert<int8_t>(-99.99), -99);
  EXPECT_EQ(convert<int32_t>(2147483646.9), 2147483646);
  EXPECT_EQ(convert<int32_t>(2147483647.5), 2147483647);
  EXPECT_EQ(convert<int32_t>(-2147483648.9), std::numeric_limits<int32_t>::min());
  // The neighbours of the bounds.
  EXPECT_EQ(convert<int32_t>(0x1.fffffep30f), 2147483520);
  EXPECT_EQ(convert<int64_t>(0x1.fffffffffffffp62), 0x7ffffffffffffc00);
  EXPECT_EQ(convert<int64_t>(0x1.fffffep62f), 0x7fffff8000000000);
  EXPECT_EQ(convert<uint8_t>(255.9), 255);
  EXPECT_EQ(convert<uint8_t>(256.0), 255);
  EXPECT_EQ(convert<uint8_t>(-1.0), 0);
}

TEST(Convert, BetweenIntegersWraps) {
  EXPECT_EQ(convert<uint8_t>(int64_t{300}), 44);
  EXPECT_EQ(convert<uint8_t>(int32_t{-1}), 255);
  EXPECT_EQ(convert<int8_t>(uint8_t{200}), -56);
  EXPECT_EQ(convert<int32_t>(int64_t{1} << 32), 0);
  EXPECT_EQ(convert<uint16_t>(int32_t{-1}), 65535);
  EXPECT_EQ(convert<uint32_t>(int64_t{-2}), 4294967294u);
  EXPECT_EQ(convert<int64_t>(UINT64_MAX), -1);
  EXPECT_EQ(convert<uint64_t>(int8_t{-1}), UINT64_MAX);
}

TEST(Convert, ToBoolAsksForZero) {
  EXPECT_TRUE(convert<bool>(kNan));
  EXPECT_TRUE(convert<bool>(1e-300));
  EXPECT_FALSE(convert<bool>(-0.0));
  EXPECT_TRUE(convert<bool>(int64_t{256}));
  EXPECT_TRUE(convert<bool>(Half(0.25f)));
  EXPECT_FALSE(convert<bool>(BFloat16(-0.0f)));
  EXPECT_EQ(convert<float>(true), 1.0f);
  EXPECT_EQ(static_cast<float>(convert<Half>(true)), 1.0f);
}

TEST(Convert, SmallFloatsGoThroughFloat32) {
  EXPECT_EQ(static_cast<float>(convert<Half>(1.0 + 0x1p-11)), 1.0f);
  EXPECT_EQ(static_cast<float>(convert<BFloat16>(int64_t{257})), 256.0f);
  EXPECT_EQ(static_cast<float>(convert<BFloat16>(Half(1.5f))), 1.5f);
  EXPECT_TRUE(std::isinf(static_cast<float>(convert<Half>(1e6))));
  EXPECT_EQ(convert<double>(Half(-2.5f)), -2.5);
}

TEST(Convert, ComplexToRealDropsTheImaginaryPart) {
  EXPECT_EQ(convert<double>(Complex<float>(1.5f, 2)), 1.5);
  EXPECT_EQ(convert<int32_t>(Complex<double>(-7.9, 1e9)), -7);
  EXPECT_EQ(convert<uint8_t>(Complex<double>(kNan, 3)), 0);
  EXPECT_EQ(static_cast<float>(convert<Half>(Complex<double>(0.25, 1))), 0.25f);
  EXPECT_TRUE(convert<bool>(Complex<float>(0, 1)));
  EXPECT_TRUE(convert<bool>(Complex<float>(0, static_cast<float>(kNan))));
  EXPECT_FALSE(convert<bool>(Complex<double>(0, -0.0)));
  EXPECT_EQ(convert<Complex<float>>(true), Complex<float>(1));
  EXPECT_EQ(convert<Complex<double>>(int64_t{-3}), Complex<double>(-3));
  EXPECT_EQ(convert<Complex<float>>(Complex<double>(1e300, 0.5)).im, 0.5f);
  EXPECT_TRUE(std::isinf(convert<Complex<float>>(Complex<double>(1e300, 0.5)).re));
}

static_assert(convert<int32_t>(3.9f) == 3 && convert<bool>(2) && convert<float>(uint8_t{7}) == 7.0f);

}  // namespace
}  // namespace tercel
