// Arithmetic on elements in memory: integers wrap, bool uses logical or and and, 16-bit floats are computed in float32.
#pragma once

#include "tercel/ops/common/cpu/simd.h"

namespace tercel::TERCEL_ISA {
namespace {

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return T(static_cast<ComputeType<T>>(a) + static_cast<ComputeType<T>>(b));
}

template <class T>
T times(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return T(static_cast<ComputeType<T>>(a) * static_cast<ComputeType<T>>(b));
}

/** The maximum; NaN if either is. */
template <class T>
T larger(T a, T b) {
  const auto x = static_cast<ComputeType<T>>(a), y = static_cast<ComputeType<T>>(b);
  return x > y || x != x ? a : b;
}

/** The minimum; NaN if either is. */
template <class T>
T smaller(T a, T b) {
  const auto x = static_cast<ComputeType<T>>(a), y = static_cast<ComputeType<T>>(b);
  return x < y || x != x ? a : b;
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
