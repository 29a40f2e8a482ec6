// Integer type used in functors.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tercel/util/macros.h"

namespace tercel {

/** An integer with arithmetic defined for all operands: it wraps; division by zero gives zero (ops check for it). */
template <class T>
struct Int {
  using Unsigned = std::make_unsigned_t<T>;
  T v;

  Int() = default;
  template <class U>
  requires std::is_arithmetic_v<U> TERCEL_HD constexpr explicit Int(U value) : v(static_cast<T>(value)) {}
  TERCEL_HD static constexpr Int wrap(Unsigned value) { return Int(static_cast<T>(value)); }
  TERCEL_HD constexpr Unsigned bits() const { return static_cast<Unsigned>(v); }

  friend TERCEL_HD constexpr Int operator+(Int a, Int b) { return wrap(a.bits() + b.bits()); }
  friend TERCEL_HD constexpr Int operator-(Int a, Int b) { return wrap(a.bits() - b.bits()); }
  friend TERCEL_HD constexpr Int operator*(Int a, Int b) { return wrap(a.bits() * b.bits()); }
  friend TERCEL_HD constexpr Int operator-(Int a) { return wrap(Unsigned{0} - a.bits()); }
  friend TERCEL_HD constexpr Int operator&(Int a, Int b) { return Int(static_cast<T>(a.v & b.v)); }
  friend TERCEL_HD constexpr Int operator|(Int a, Int b) { return Int(static_cast<T>(a.v | b.v)); }
  friend TERCEL_HD constexpr Int operator^(Int a, Int b) { return Int(static_cast<T>(a.v ^ b.v)); }
  friend TERCEL_HD constexpr bool operator==(Int a, Int b) { return a.v == b.v; }
  friend TERCEL_HD constexpr bool operator!=(Int a, Int b) { return a.v != b.v; }
  friend TERCEL_HD constexpr bool operator<(Int a, Int b) { return a.v < b.v; }
  friend TERCEL_HD constexpr bool operator<=(Int a, Int b) { return a.v <= b.v; }
  friend TERCEL_HD constexpr bool operator>(Int a, Int b) { return a.v > b.v; }
  friend TERCEL_HD constexpr bool operator>=(Int a, Int b) { return a.v >= b.v; }

  friend TERCEL_HD constexpr Int where(bool condition, Int a, Int b) { return condition ? a : b; }
  friend TERCEL_HD constexpr Int abs(Int a) { return is_negative(a) ? -a : a; }
  friend TERCEL_HD constexpr Int maximum(Int a, Int b) { return a.v > b.v ? a : b; }
  friend TERCEL_HD constexpr Int minimum(Int a, Int b) { return a.v < b.v ? a : b; }
  friend TERCEL_HD constexpr Int floor(Int a) { return a; }
  friend TERCEL_HD constexpr Int ceil(Int a) { return a; }
  friend TERCEL_HD constexpr Int round(Int a) { return a; }
  friend TERCEL_HD constexpr Int trunc(Int a) { return a; }
  friend TERCEL_HD constexpr bool isnan(Int) { return false; }
  friend TERCEL_HD constexpr bool isfinite(Int) { return true; }

  /** Rounds towards zero. The lowest number divided by -1 wraps to itself. */
  friend TERCEL_HD constexpr Int divide(Int a, Int b) {
    return b.v == 0 ? Int(0) : (is_minus_one(b) ? -a : Int(static_cast<T>(a.v / b.v)));
  }
  /** The result has the sign of the dividend. */
  friend TERCEL_HD constexpr Int fmod(Int a, Int b) {
    return b.v == 0 || is_minus_one(b) ? Int(0) : Int(static_cast<T>(a.v % b.v));
  }
  /** The result has the sign of the divisor. */
  friend TERCEL_HD constexpr Int remainder(Int a, Int b) {
    const Int r = fmod(a, b);
    return r.v != 0 && is_negative(r) != is_negative(b) ? r + b : r;
  }
  friend TERCEL_HD constexpr Int floor_divide(Int a, Int b) {
    const Int q = divide(a, b);
    return remainder_rounds_down(a, b) ? q - Int(1) : q;
  }
  /** Exponentiation by squaring. Negative exponents truncate: exact for bases 1 and -1, otherwise 0. */
  friend TERCEL_HD constexpr Int pow(Int a, Int b) {
    if (is_negative(b)) return a.v == 1 ? Int(1) : (is_minus_one(a) ? ((b.v & 1) != 0 ? Int(-1) : Int(1)) : Int(0));
    Int power(1);
    for (Unsigned e = b.bits(); e != 0; e >>= 1) {
      if ((e & 1u) != 0) power = power * a;
      a = a * a;
    }
    return power;
  }

 private:
  static TERCEL_HD constexpr bool is_negative(Int a) {
    if constexpr (std::is_signed_v<T>)
      return a.v < 0;
    else
      return false;
  }
  static TERCEL_HD constexpr bool is_minus_one(Int a) {
    if constexpr (std::is_signed_v<T>)
      return a.v == -1;
    else
      return false;
  }
  static TERCEL_HD constexpr bool remainder_rounds_down(Int a, Int b) {
    const Int r = fmod(a, b);
    return r.v != 0 && is_negative(r) != is_negative(b);
  }
};

}  // namespace tercel
