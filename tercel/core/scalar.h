// One number of any type, as it stands in an expression such as x + 1.5.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "tercel/core/convert.h"
#include "tercel/core/scalar_type.h"

namespace tercel {

/** A bool, an integer or a floating number, kept at full width. */
class Scalar {
 public:
  constexpr Scalar() : Scalar(int64_t{0}) {}
  constexpr Scalar(bool value) : int_(value), category_(TypeCategory::Bool) {}
  /** ValueError for an unsigned number that int64 does not hold. */
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) constexpr Scalar(T value)
      : int_(static_cast<int64_t>(value)), category_(TypeCategory::Integral) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(int64_t))
      TERCEL_CHECK(int_ >= 0, ValueError, "the number ", value, " does not fit int64");
  }
  template <class T>
  requires std::is_floating_point_v<T>
  constexpr Scalar(T value) : double_(static_cast<double>(value)), category_(TypeCategory::Floating) {}
  constexpr Scalar(Half value) : Scalar(static_cast<float>(value)) {}
  constexpr Scalar(BFloat16 value) : Scalar(static_cast<float>(value)) {}

  constexpr TypeCategory category() const { return category_; }
  constexpr bool is_floating() const { return category_ == TypeCategory::Floating; }

  /** The type that it takes part in promotion with: bool, int64 or float32 (the default floating type). */
  constexpr ScalarType dtype() const {
    switch (category_) {
      case TypeCategory::Bool: return kBool;
      case TypeCategory::Integral: return kInt64;
      default: return kFloat32;
    }
  }

  /** As T, by the rules of Note [Conversions] in convert.h. */
  template <class T>
  constexpr T to() const {
    return is_floating() ? convert<T>(double_) : convert<T>(int_);
  }
  constexpr double to_double() const { return to<double>(); }
  constexpr int64_t to_int64() const { return to<int64_t>(); }
  constexpr bool to_bool() const { return to<bool>(); }

 private:
  union {
    int64_t int_;
    double double_;
  };
  TypeCategory category_;
};

/** The number as it is printed in an error message. */
TERCEL_API std::string to_string(Scalar value);

}  // namespace tercel
