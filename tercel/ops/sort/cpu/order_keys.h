// Maps elements to integers with the same order: NaN last, both zeros equal.
#pragma once

#include <cstring>
#include <type_traits>

#include "tercel/ops/common/cpu/simd.h"

namespace tercel::TERCEL_ISA {
namespace {

/** Type of the keys of elements of type T: a signed integer of 32 or 64 bits. */
template <class T>
using OrderKey = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

// Positive floats are ordered like their bits, negative floats in reverse.
template <class T, class Bits>
OrderKey<T> float_key(T x) {
  const auto value = static_cast<ComputeType<T>>(x);
  Bits bits;
  std::memcpy(&bits, &x, sizeof(Bits));
  constexpr int kSign = static_cast<int>(sizeof(Bits)) * 8 - 1;
  constexpr Bits kMagnitude = static_cast<Bits>(~(Bits{1} << kSign));
  const Bits key = static_cast<Bits>(bits ^ ((bits >> kSign) & kMagnitude));
  return value != value ? OrderKey<T>{kMagnitude} : (value == 0 ? 0 : OrderKey<T>{key});
}

// Converts between unsigned and signed keys, keeping the order.
template <class T>
constexpr T kTopBit = T(T{1} << (sizeof(T) * 8 - 1));
template <class T>
constexpr bool kFillsKey = std::is_same_v<T, uint64_t> || std::is_same_v<T, uint32_t>;

template <class T>
OrderKey<T> order_key(T x) {
  if constexpr (kFillsKey<T>)
    return static_cast<OrderKey<T>>(x ^ kTopBit<T>);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<OrderKey<T>>(x);
  else if constexpr (sizeof(T) == 8)
    return float_key<T, int64_t>(x);
  else if constexpr (sizeof(T) == 4)
    return float_key<T, int32_t>(x);
  else
    return float_key<T, int16_t>(x);
}

/** The integer from which a key was computed. */
template <class T>
T from_key(int64_t key) {
  if constexpr (kFillsKey<T>)
    return static_cast<T>(key) ^ kTopBit<T>;
  else
    return static_cast<T>(key);
}

/** Calls fn.template operator()<T>() with the C++ type of a dtype; the ops have rejected complex ones. */
template <class Fn>
void visit_ordered(ScalarType t, Fn fn) {
  switch (t) {
    case ScalarType::Float32: return fn.template operator()<float>();
    case ScalarType::Float64: return fn.template operator()<double>();
    case ScalarType::Float16: return fn.template operator()<Half>();
    case ScalarType::BFloat16: return fn.template operator()<BFloat16>();
    case ScalarType::Int64: return fn.template operator()<int64_t>();
    case ScalarType::Int32: return fn.template operator()<int32_t>();
    case ScalarType::Int16: return fn.template operator()<int16_t>();
    case ScalarType::Int8: return fn.template operator()<int8_t>();
    case ScalarType::UInt8: return fn.template operator()<uint8_t>();
    case ScalarType::UInt16: return fn.template operator()<uint16_t>();
    case ScalarType::UInt32: return fn.template operator()<uint32_t>();
    case ScalarType::UInt64: return fn.template operator()<uint64_t>();
    case ScalarType::Bool: return fn.template operator()<bool>();
    case ScalarType::Complex64:
    case ScalarType::Complex128:
    case ScalarType::Undefined: break;
  }
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
