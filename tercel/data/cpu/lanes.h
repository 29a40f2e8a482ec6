// Registers of keys and floats of rows.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tercel/util/macros.h"

namespace tercel::TERCEL_ISA {

constexpr int kRowSimdBytes = TERCEL_ISA_LEVEL == 2 ? 64 : TERCEL_ISA_LEVEL == 1 ? 32 : 16;
/** Keys in a register. SSE2 compares no integers of 64 bits. */
constexpr int kKeyLanes = TERCEL_ISA_LEVEL == 0 ? 1 : kRowSimdBytes / 8;
/** Rows have fewer floats than the largest register. */
constexpr int kFloatLanes = TERCEL_ISA_LEVEL == 0 ? 4 : 8;

namespace detail {
template <class T, int Lanes>
struct RowSimdOf {
  typedef T Type __attribute__((vector_size(sizeof(T) * Lanes)));  // NOLINT(modernize-use-using)
};
template <class T>
struct RowSimdOf<T, 1> {
  using Type = T;
};
}  // namespace detail

template <class T, int Lanes>
using RowSimd = typename detail::RowSimdOf<T, Lanes>::Type;

template <class V>
TERCEL_ALWAYS_INLINE V load_as(const void* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(V));
  return v;
}

template <class V>
TERCEL_ALWAYS_INLINE void store_as(void* to, V v) {
  __builtin_memcpy(to, &v, sizeof(V));
}

/** All ones in the lanes where a > b. */
template <class V>
TERCEL_ALWAYS_INLINE V greater(V a, V b) {
  if constexpr (std::is_integral_v<V>)
    return a > b ? ~V{0} : V{0};
  else
    return reinterpret_cast<V>(a > b);
}

/** The OR of all lanes is not 0. */
template <class V>
TERCEL_ALWAYS_INLINE bool any_bit(V v) {
  if constexpr (std::is_integral_v<V>) {
    return v != 0;
  } else {
    uint64_t words[sizeof(V) / 8];
    __builtin_memcpy(words, &v, sizeof(V));
    uint64_t all = 0;
    for (const uint64_t word : words) all |= word;
    return all != 0;
  }
}

constexpr uint32_t kExponent = 0x7f800000;  // all ones: infinite or NaN

}  // namespace tercel::TERCEL_ISA
