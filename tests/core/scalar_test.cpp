#include "tercel/core/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>

namespace tercel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Scalar, KeepsWhatItWasMadeFrom) {
  EXPECT_EQ(Scalar().dtype(), kInt64);
  EXPECT_EQ(Scalar(true).dtype(), kBool);
  EXPECT_EQ(Scalar(3).dtype(), kInt64);
  EXPECT_EQ(Scalar(uint8_t{3}).dtype(), kInt64);
  EXPECT_EQ(Scalar(size_t{3}).dtype(), kInt64);
  EXPECT_EQ(Scalar('a').dtype(), kInt64);
  EXPECT_EQ(Scalar(1.5).dtype(), kFloat32);  // the default floating type
  EXPECT_EQ(Scalar(1.5f).dtype(), kFloat32);
  EXPECT_EQ(Scalar(Half(1.5f)).dtype(), kFloat32);
  EXPECT_EQ(Scalar(BFloat16(1.5f)).to_double(), 1.5);
  EXPECT_EQ(Scalar().to_int64(), 0);
  EXPECT_EQ(Scalar(0.1).to_double(), 0.1);
  EXPECT_EQ(Scalar(INT64_MAX).to_int64(), INT64_MAX);
  EXPECT_EQ(Scalar(INT64_MIN).to_int64(), INT64_MIN);
  EXPECT_TRUE(Scalar(1.0).is_floating());
  EXPECT_FALSE(Scalar(1).is_floating());
}

TEST(Scalar, IsAConstant) {
  constexpr Scalar s = 2.5;
  static_assert(s.to_int64() == 2 && s.to<float>() == 2.5f && s.to_bool());
  static_assert(Scalar(300).to<uint8_t>() == 44);
}

TEST(Scalar, NumbersAboveInt64) {
  EXPECT_EQ(Scalar(uint64_t{INT64_MAX}).to_int64(), INT64_MAX);
  EXPECT_EQ(Scalar(uint64_t{INT64_MAX}).dtype(), kInt64);
  const Scalar large(UINT64_MAX);
  EXPECT_EQ(large.dtype(), kUInt64);
  EXPECT_TRUE(large.is_integral() && large.is_above_int64() && !large.is_floating() && !large.is_complex());
  EXPECT_EQ(large.category(), TypeCategory::Integral);
  EXPECT_EQ(large.to<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(large.to_int64(), -1);
  EXPECT_EQ(large.to_double(), 0x1p64);
  EXPECT_EQ(to_string(large), "18446744073709551615");
  EXPECT_FALSE(equals(large, Scalar(-1)));
  EXPECT_TRUE(equals(Scalar(-1), Scalar(-1.0)));
}

TEST(Scalar, ComplexNumbers) {
  const Scalar z(std::complex<double>(1.5, -2));
  EXPECT_TRUE(z.is_complex() && !z.is_floating() && !z.is_integral());
  EXPECT_EQ(z.dtype(), kComplex64);
  EXPECT_EQ(z.category(), TypeCategory::Complex);
  EXPECT_EQ(z.to_complex(), Complex<double>(1.5, -2));
  EXPECT_EQ(z.to_double(), 1.5);
  EXPECT_TRUE(Scalar(Complex<float>(0, 1)).to_bool());
  EXPECT_EQ(to_string(z), "1.5-2j");
  EXPECT_EQ(to_string(Scalar(Complex<float>(1, 2))), "1+2j");
  EXPECT_TRUE(equals(Scalar(Complex<double>(2)), 2));
  EXPECT_FALSE(equals(Scalar(Complex<double>(2, 1)), 2));
  // The imaginary part may have any bits, including those of the marks.
  for (uint64_t mark = 0x7ff45ca1a5000000; mark < 0x7ff45ca1a5000004; ++mark) {
    double nan;
    std::memcpy(&nan, &mark, sizeof nan);
    const Scalar x(Complex<double>(3, nan));
    EXPECT_TRUE(x.is_complex());
    EXPECT_TRUE(std::isnan(x.to_complex().im));
    EXPECT_EQ(x.to_double(), 3);
  }
  for (const Scalar real : {Scalar(true), Scalar(1), Scalar(UINT64_MAX), Scalar(1.5)}) EXPECT_FALSE(real.is_complex());
}

TEST(Scalar, ToIntegers) {
  EXPECT_EQ(Scalar(2.9).to_int64(), 2);
  EXPECT_EQ(Scalar(-2.9).to_int64(), -2);
  EXPECT_EQ(Scalar(true).to_int64(), 1);
  EXPECT_EQ(Scalar(1e300).to_int64(), INT64_MAX);
  EXPECT_EQ(Scalar(-kInf).to_int64(), INT64_MIN);
  EXPECT_EQ(Scalar(0x1p63).to_int64(), INT64_MAX);
  EXPECT_EQ(Scalar(-0x1p63).to_int64(), INT64_MIN);
  EXPECT_EQ(Scalar(kNan).to_int64(), 0);
  EXPECT_EQ(Scalar(1e10).to<int32_t>(), INT32_MAX);
  EXPECT_EQ(Scalar(-1.0).to<uint8_t>(), 0);
  EXPECT_EQ(Scalar(-1).to<uint8_t>(), 255);  // integers wrap
  EXPECT_EQ(Scalar(int64_t{1} << 40).to<int32_t>(), 0);
}

TEST(Scalar, ToFloating) {
  EXPECT_EQ(Scalar(3).to<float>(), 3.0f);
  EXPECT_EQ(Scalar(true).to<double>(), 1.0);
  EXPECT_EQ(Scalar((int64_t{1} << 53) + 1).to_double(), 0x1p53);
  EXPECT_EQ(static_cast<float>(Scalar(1.5).to<Half>()), 1.5f);
  EXPECT_EQ(static_cast<float>(Scalar(-7).to<BFloat16>()), -7.0f);
  EXPECT_TRUE(std::isinf(Scalar(1e300).to<float>()));
  EXPECT_TRUE(std::isnan(Scalar(kNan).to<float>()));
}

TEST(Scalar, ToBool) {
  EXPECT_FALSE(Scalar(0).to_bool());
  EXPECT_FALSE(Scalar(-0.0).to_bool());
  EXPECT_TRUE(Scalar(1e-300).to_bool());
  EXPECT_TRUE(Scalar(kNan).to_bool());
  EXPECT_TRUE(Scalar(-1).to<bool>());
}

TEST(Scalar, Prints) {
  EXPECT_EQ(to_string(Scalar(true)), "true");
  EXPECT_EQ(to_string(Scalar(-7)), "-7");
  EXPECT_EQ(to_string(Scalar(0.1)), "0.1");
  EXPECT_EQ(to_string(Scalar(kInf)), "inf");
}

}  // namespace
}  // namespace tercel
