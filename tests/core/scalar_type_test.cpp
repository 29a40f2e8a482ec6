#include "tercel/core/scalar_type.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <type_traits>

namespace tercel {
namespace {

using test::message_of;

constexpr ScalarType kAll[] = {kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kFloat32, kFloat64, kBool, kBFloat16};

TEST(ScalarType, CodesAreThoseOfFiles) {
  const int codes[] = {0, 1, 2, 3, 4, 5, 6, 7, 11, 15};
  for (size_t i = 0; i < std::size(kAll); ++i) EXPECT_EQ(static_cast<int>(kAll[i]), codes[i]);
}

TEST(ScalarType, SizesAndCategories) {
  const size_t sizes[] = {1, 1, 2, 4, 8, 2, 4, 8, 1, 2};
  for (size_t i = 0; i < std::size(kAll); ++i) {
    EXPECT_EQ(item_size(kAll[i]), sizes[i]);
    EXPECT_EQ(is_floating(kAll[i]), i >= 5 && i != 8);
    EXPECT_EQ(is_integral(kAll[i], false), i < 5);
    EXPECT_EQ(is_integral(kAll[i], true), i < 5 || i == 8);
  }
  EXPECT_EQ(item_size(ScalarType::Undefined), 0u);
  EXPECT_FALSE(is_floating(ScalarType::Undefined));
  EXPECT_FALSE(is_integral(ScalarType::Undefined, true));
  EXPECT_EQ(category_of(kBool), TypeCategory::Bool);
  EXPECT_LT(TypeCategory::Bool, TypeCategory::Integral);
  EXPECT_LT(TypeCategory::Integral, TypeCategory::Floating);
}

TEST(ScalarType, NamesThereAndBack) {
  for (const ScalarType t : kAll) EXPECT_EQ(parse_scalar_type(to_string(t)), t);
  EXPECT_EQ(to_string(kBFloat16), "bfloat16");
  EXPECT_EQ(to_string(ScalarType::Undefined), "undefined");
  EXPECT_EQ(message_of<ValueError>([] { parse_scalar_type("float"); }),
            "unknown dtype 'float': expected one of uint8, int8, int16, int32, int64, float16, float32, float64, bool, "
            "bfloat16");
  EXPECT_THROW(parse_scalar_type("undefined"), ValueError);
  EXPECT_THROW(parse_scalar_type(""), ValueError);
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

// PyTorch's table, read off torch.promote_types.
TEST(ScalarType, PromoteTypes) {
  constexpr ScalarType u1 = kUInt8, i1 = kInt8, i2 = kInt16, i4 = kInt32, i8 = kInt64, f2 = kFloat16, f4 = kFloat32,
                       f8 = kFloat64, b1 = kBool, bf = kBFloat16;
  const ScalarType table[10][10] = {
      // u1  i1  i2  i4  i8  f2  f4  f8  b1  bf
      {u1, i2, i2, i4, i8, f2, f4, f8, u1, bf},  // u1
      {i2, i1, i2, i4, i8, f2, f4, f8, i1, bf},  // i1
      {i2, i2, i2, i4, i8, f2, f4, f8, i2, bf},  // i2
      {i4, i4, i4, i4, i8, f2, f4, f8, i4, bf},  // i4
      {i8, i8, i8, i8, i8, f2, f4, f8, i8, bf},  // i8
      {f2, f2, f2, f2, f2, f2, f4, f8, f2, f4},  // f2
      {f4, f4, f4, f4, f4, f4, f4, f8, f4, f4},  // f4
      {f8, f8, f8, f8, f8, f8, f8, f8, f8, f8},  // f8
      {u1, i1, i2, i4, i8, f2, f4, f8, b1, bf},  // b1
      {bf, bf, bf, bf, bf, f4, f4, f8, bf, bf},  // bf
  };
  for (size_t i = 0; i < 10; ++i)
    for (size_t j = 0; j < 10; ++j)
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
  EXPECT_THROW(promote_types(ScalarType::Undefined, kFloat32), TypeError);
  EXPECT_THROW(promote_types(kFloat32, ScalarType::Undefined), TypeError);
  EXPECT_THROW(promote_types(ScalarType::Undefined, ScalarType::Undefined), TypeError);
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
  EXPECT_EQ(message_of<TypeError>([&] { name(kFloat32); }), "gather: not implemented for dtype float32");
  EXPECT_EQ(message_of<TypeError>([&] { visit_floating_types("exp", kBool, []<class T>() {}); }),
            "exp: not implemented for dtype bool");
  EXPECT_THROW(visit_all_types("copy", ScalarType::Undefined, []<class T>() {}), TypeError);
  int calls = 0;
  visit_floating_types("exp", kBFloat16, [&]<class T>() { calls += std::is_same_v<T, BFloat16>; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tercel
