// Vectors of integers, with the operations of Vec<T>. Arithmetic wraps.
#pragma once

#include "tercel/ops/common/cpu/simd.h"

namespace tercel::TERCEL_ISA {
namespace {

template <class T>
struct IntMask {
  Simd<T> v;  // -1 or 0 in each lane

  friend IntMask operator&(IntMask a, IntMask b) { return {a.v & b.v}; }
  friend IntMask operator|(IntMask a, IntMask b) { return {a.v | b.v}; }
  friend IntMask operator!(IntMask a) { return {~a.v}; }
};

template <class T>
struct IntVec {
  static constexpr int64_t kSize = kLanes<T>;
  using Unsigned = Simd<std::make_unsigned_t<T>>;
  Simd<T> v;

  IntVec() = default;
  IntVec(Simd<T> value) : v(value) {}
  template <class U>
  requires std::is_arithmetic_v<U>
  explicit IntVec(U value) : v(broadcast(static_cast<T>(value))) {}
  static IntVec load(const T* p) { return TERCEL_ISA::load(p); }
  void store(T* p) const { TERCEL_ISA::store(p, v); }
  static IntVec wrap(Unsigned bits) { return reinterpret_cast<Simd<T>>(bits); }
  Unsigned bits() const { return reinterpret_cast<Unsigned>(v); }

  friend IntVec operator+(IntVec a, IntVec b) { return wrap(a.bits() + b.bits()); }
  friend IntVec operator-(IntVec a, IntVec b) { return wrap(a.bits() - b.bits()); }
  friend IntVec operator*(IntVec a, IntVec b) { return wrap(a.bits() * b.bits()); }
  friend IntMask<T> operator==(IntVec a, IntVec b) { return mask(a.v == b.v); }
  friend IntMask<T> operator!=(IntVec a, IntVec b) { return mask(a.v != b.v); }
  friend IntMask<T> operator<(IntVec a, IntVec b) { return mask(a.v < b.v); }
  friend IntMask<T> operator>(IntVec a, IntVec b) { return mask(a.v > b.v); }
  friend IntVec where(IntMask<T> condition, IntVec a, IntVec b) { return (condition.v & a.v) | (~condition.v & b.v); }
  friend IntVec abs(IntVec a) {
    if constexpr (std::is_unsigned_v<T>)
      return a;
    else
      return where(a < IntVec(0), IntVec(0) - a, a);
  }

 private:
  // Comparisons give lanes of signed integers.
  template <class Lanes>
  static IntMask<T> mask(Lanes lanes) {
    return {reinterpret_cast<Simd<T>>(lanes)};
  }
};

}  // namespace
}  // namespace tercel::TERCEL_ISA
