#include "tercel/core/scalar_type.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <type_traits>

namespace tercel {
namespace {

using test::message_of;

constexpr ScalarType kAll[] = {kUInt8, kInt8,     kInt16,  kInt32,  kInt64,  kFloat16,   kFloat32,   kFloat64,
                               kBool,  kBFloat16, kUInt16, kUInt32, kUInt64, kComplex64, kComplex128};

TEST(ScalarType, CodesAreThoseOfFiles) {
  const int codes[] = {0, 1, 2, 3, 4, 5, 6, 7, 11, 15, 27, 28, 29, 9, 10};
  for (size_t i = 0; i < std::size(kAll); ++i) EXPECT_EQ(static_cast<int>(kAll[i]), codes[i]);
}

TEST(ScalarType, SizesAndCategories) {
  const size_t sizes[] = {1, 1, 2, 4, 8, 2, 4, 8, 1, 2, 2, 4, 8, 8, 16};
  for (size_t i = 0; i < std::size(kAll); ++i) {
    EXPECT_EQ(item_size(kAll[i]), sizes[i]);
    EXPECT_EQ(is_floating(kAll[i]), i >= 5 && i != 8 && i < 10);
    EXPECT_EQ(is_complex(kAll[i]), i >= 13);
    EXPECT_EQ(is_differentiable(kAll[i]), is_floating(kAll[i]) || i >= 13);
    EXPECT_EQ(is_unsigned(kAll[i]), i == 0 || (i >= 10 && i < 13));
    EXPECT_EQ(is_integral(kAll[i], false), i < 5 || (i >= 10 && i < 13));
    EXPECT_EQ(is_integral(kAll[i], true), i < 5 || i == 8 || (i >= 10 && i < 13));
  }
  EXPECT_EQ(item_size(ScalarType::Undefined), 0u);
  EXPECT_FALSE(is_floating(ScalarType::Undefined));
  EXPECT_FALSE(is_integral(ScalarType::Undefined, true));
  EXPECT_EQ(category_of(kBool), TypeCategory::Bool);
  EXPECT_LT(TypeCategory::Bool, TypeCategory::Integral);
  EXPECT_LT(TypeCategory::Integral, TypeCategory::Floating);
  EXPECT_LT(TypeCategory::Floating, TypeCategory::Complex);
  EXPECT_EQ(real_dtype(kComplex64), kFloat32);
  EXPECT_EQ(real_dtype(kComplex128), kFloat64);
  EXPECT_EQ(real_dtype(kBFloat16), kBFloat16);
  EXPECT_EQ(complex_dtype(kFloat64), kComplex128);
  EXPECT_EQ(complex_dtype(kFloat16), kComplex64);
  EXPECT_EQ(complex_dtype(kComplex128), kComplex128);
}

TEST(ScalarType, NamesThereAndBack) {
  for (const ScalarType t : kAll) EXPECT_EQ(parse_scalar_type(to_string(t)), t);
  EXPECT_EQ(to_string(kBFloat16), "bfloat16");
  EXPECT_EQ(to_string(ScalarType::Undefined), "undefined");
  EXPECT_EQ(message_of<RuntimeError>([] { parse_scalar_type("float"); }),
            "unknown dtype 'float': expected one of uint8, int8, int16, int32, int64, float16, float32, float64, bool, "
            "bfloat16, uint16, uint32, uint64, complex64, complex128");
  EXPECT_THROW(parse_scalar_type("undefined"), RuntimeError);
  EXPECT_THROW(parse_scalar_type(""), RuntimeError);
}

TEST(ScalarType, CppTypesMatch) {
  for (const ScalarType t : kAll) {
    const size_t size = visit_all_types("test", t, [&]<class T>() {
      EXPECT_EQ(scalar_type_of<T>(), t);
      const bool floating = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
      EXPECT_EQ(floating, is_floating(t));
      return sizeof(T);
    });
    EXPECT_EQ(size, item_size(t));
  }
}

// PyTorch's table, read off torch.promote_types; NumPy's for uint16, uint32 and uint64.
TEST(ScalarType, PromoteTypes) {
  constexpr ScalarType u1 = kUInt8, i1 = kInt8, i2 = kInt16, i4 = kInt32, i8 = kInt64, f2 = kFloat16, f4 = kFloat32,
                       f8 = kFloat64, b1 = kBool, bf = kBFloat16, u2 = kUInt16, u4 = kUInt32, u8 = kUInt64,
                       c8 = kComplex64, cd = kComplex128;
  const ScalarType table[15][15] = {
      // u1  i1  i2  i4  i8  f2  f4  f8  b1  bf  u2  u4  u8  c8  cd
      {u1, i2, i2, i4, i8, f2, f4, f8, u1, bf, u2, u4, u8, c8, cd},  // u1
      {i2, i1, i2, i4, i8, f2, f4, f8, i1, bf, i4, i8, f8, c8, cd},  // i1
      {i2, i2, i2, i4, i8, f2, f4, f8, i2, bf, i4, i8, f8, c8, cd},  // i2
      {i4, i4, i4, i4, i8, f2, f4, f8, i4, bf, i4, i8, f8, c8, cd},  // i4
      {i8, i8, i8, i8, i8, f2, f4, f8, i8, bf, i8, i8, f8, c8, cd},  // i8
      {f2, f2, f2, f2, f2, f2, f4, f8, f2, f4, f2, f2, f2, c8, cd},  // f2
      {f4, f4, f4, f4, f4, f4, f4, f8, f4, f4, f4, f4, f4, c8, cd},  // f4
      {f8, f8, f8, f8, f8, f8, f8, f8, f8, f8, f8, f8, f8, cd, cd},  // f8
      {u1, i1, i2, i4, i8, f2, f4, f8, b1, bf, u2, u4, u8, c8, cd},  // b1
      {bf, bf, bf, bf, bf, f4, f4, f8, bf, bf, bf, bf, bf, c8, cd},  // bf
      {u2, i4, i4, i4, i8, f2, f4, f8, u2, bf, u2, u4, u8, c8, cd},  // u2
      {u4, i8, i8, i8, i8, f2, f4, f8, u4, bf, u4, u4, u8, c8, cd},  // u4
      {u8, f8, f8, f8, f8, f2, f4, f8, u8, bf, u8, u8, u8, c8, cd},  // u8
      {c8, c8, c8, c8, c8, c8, c8, cd, c8, c8, c8, c8, c8, c8, cd},  // c8
      {cd, cd, cd, cd, cd, cd, cd, cd, cd, cd, cd, cd, cd, cd, cd},  // cd
  };
  for (size_t i = 0; i < 15; ++i)
    for (size_t j = 0; j < 15; ++j)
      EXPECT_EQ(promote_types(kAll[i], kAll[j]), table[i][j]) << to_string(kAll[i]) << " " << to_string(kAll[j]);
}

TEST(ScalarType, PromotionIsALattice) {
  for (const ScalarType a : kAll)
    for (const ScalarType b : kAll) {
      EXPECT_EQ(promote_types(a, b), promote_types(b, a));
      EXPECT_TRUE(can_cast(a, promote_types(a, b)));
    }
}

TEST(ScalarType, UndefinedIsNotPromoted) {
  EXPECT_THROW(promote_types(ScalarType::Undefined, kFloat32), RuntimeError);
  EXPECT_THROW(promote_types(kFloat32, ScalarType::Undefined), RuntimeError);
  EXPECT_THROW(promote_types(ScalarType::Undefined, ScalarType::Undefined), RuntimeError);
}

TEST(ScalarType, CanCast) {
  for (const ScalarType from : kAll)
    for (const ScalarType to : kAll)
      EXPECT_EQ(can_cast(from, to), category_of(from) <= category_of(to)) << to_string(from) << " " << to_string(to);
  EXPECT_FALSE(can_cast(kInt8, kBool));
  EXPECT_FALSE(can_cast(kFloat16, kInt64));
  EXPECT_TRUE(can_cast(kFloat64, kFloat16));
  EXPECT_TRUE(can_cast(kInt64, kUInt8));
  EXPECT_FALSE(can_cast(ScalarType::Undefined, kFloat32));
  EXPECT_FALSE(can_cast(kFloat32, ScalarType::Undefined));
}

TEST(ScalarType, VisitRefusesWhatIsNotListed) {
  const auto name = [](ScalarType t) { return visit_index_types("gather", t, []<class T>() { return sizeof(T); }); };
  EXPECT_EQ(name(kInt32), 4u);
  EXPECT_EQ(name(kInt64), 8u);
  EXPECT_EQ(message_of<RuntimeError>([&] { name(kFloat32); }), "gather: not implemented for dtype float32");
  EXPECT_EQ(message_of<RuntimeError>([&] { visit_floating_types("exp", kBool, []<class T>() {}); }),
            "exp: not implemented for dtype bool");
  EXPECT_THROW(visit_all_types("copy", ScalarType::Undefined, []<class T>() {}), RuntimeError);
  int calls = 0;
  visit_floating_types("exp", kBFloat16, [&]<class T>() { calls += std::is_same_v<T, BFloat16>; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tercel
