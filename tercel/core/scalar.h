// One number of any type, as in the expression x + 1.5.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "tercel/core/convert.h"
#include "tercel/core/scalar_type.h"

namespace tercel {

/**
 * A bool, an integer, a floating or a complex number, kept at full width.
 *
 * Note [Scalars in two words]
 * A Scalar travels in two registers. The second word is a mark for the type of the first or, for a complex
 * number, the imaginary part. Marks are the bits of signalling NaNs, which arithmetic never produces; constructing a
 * complex Scalar from one quiets it.
 */
class Scalar {
 public:
  constexpr Scalar() : Scalar(int64_t{0}) {}
  constexpr Scalar(bool value) : int_(value), mark_(kBoolMark) {}
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) constexpr Scalar(T value)
      : int_(static_cast<int64_t>(value)), mark_(kIntMark) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(int64_t))
      if (int_ < 0) mark_ = kUnsignedMark;
  }
  template <class T>
  requires std::is_floating_point_v<T>
  constexpr Scalar(T value) : double_(static_cast<double>(value)), mark_(kFloatMark) {}
  constexpr Scalar(Half value) : Scalar(static_cast<float>(value)) {}
  constexpr Scalar(BFloat16 value) : Scalar(static_cast<float>(value)) {}
  /** From Complex or std::complex. */
  template <class C>
  requires(std::is_class_v<C>&& requires(const C& c) {
    static_cast<double>(c.real());
    static_cast<double>(c.imag());
  }) constexpr Scalar(const C& value)
      : double_(static_cast<double>(value.real())),
        mark_(__builtin_bit_cast(uint64_t, static_cast<double>(value.imag()))) {
    if (!is_complex()) mark_ |= kQuiet;
  }

  constexpr TypeCategory category() const {
    switch (mark_) {
      case kBoolMark: return TypeCategory::Bool;
      case kIntMark:
      case kUnsignedMark: return TypeCategory::Integral;
      case kFloatMark: return TypeCategory::Floating;
      default: return TypeCategory::Complex;
    }
  }
  constexpr bool is_floating() const { return mark_ == kFloatMark; }
  constexpr bool is_complex() const { return mark_ - kBoolMark > kFloatMark - kBoolMark; }
  /** An integer or a bool. */
  constexpr bool is_integral() const { return mark_ - kBoolMark <= kUnsignedMark - kBoolMark; }
  /** An integer above the range of int64. */
  constexpr bool is_above_int64() const { return mark_ == kUnsignedMark; }

  /**
   * Its dtype for type promotion: bool, int64 (uint64 above its range), float32 or complex64 (the
   * default types).
   */
  constexpr ScalarType dtype() const {
    switch (mark_) {
      case kBoolMark: return kBool;
      case kIntMark: return kInt64;
      case kUnsignedMark: return kUInt64;
      case kFloatMark: return kFloat32;
      default: return kComplex64;
    }
  }

  /** As T, by the rules of Note [Conversions] in convert.h. */
  template <class T>
  constexpr T to() const {
    if (mark_ == kFloatMark) return convert<T>(double_);
    if (is_complex()) return convert<T>(Complex<double>(double_, __builtin_bit_cast(double, mark_)));
    return is_above_int64() ? convert<T>(static_cast<uint64_t>(int_)) : convert<T>(int_);
  }
  constexpr double to_double() const { return to<double>(); }
  constexpr int64_t to_int64() const { return to<int64_t>(); }
  constexpr bool to_bool() const { return to<bool>(); }
  constexpr Complex<double> to_complex() const { return to<Complex<double>>(); }

 private:
  static constexpr uint64_t kBoolMark = 0x7ff45ca1a5000000, kIntMark = kBoolMark + 1, kUnsignedMark = kBoolMark + 2,
                            kFloatMark = kBoolMark + 3, kQuiet = 0x0008000000000000;

  union {
    int64_t int_;
    double double_;
  };
  uint64_t mark_;
};

static_assert(sizeof(Scalar) == 16 && std::is_trivially_copyable_v<Scalar>);

/** Whether both are the same number, regardless of their types. */
constexpr bool equals(Scalar a, Scalar b) {
  if (a.is_integral() && b.is_integral())
    return a.to_int64() == b.to_int64() && a.is_above_int64() == b.is_above_int64();
  return a.to_complex() == b.to_complex();
}

/** The number as it is printed in an error message. */
TERCEL_API std::string to_string(Scalar value);

}  // namespace tercel
