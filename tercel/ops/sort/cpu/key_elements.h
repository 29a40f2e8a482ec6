// Access to keys and positions during and after sorting; see Note [Sorted elements].
#pragma once

#include <type_traits>

#include "tercel/ops/sort/key_sort_kernels.h"
#include "tercel/util/macros.h"

namespace tercel::TERCEL_ISA {

struct RawKeys {
  const int64_t* keys;
  int64_t base;
  int32_t position_bits;
  bool descending;

  TERCEL_ALWAYS_INLINE uint64_t key(int64_t i) const {
    const uint64_t above = static_cast<uint64_t>(keys[i]) - static_cast<uint64_t>(base);
    return descending ? ~above + 1 : above;
  }
  template <class Element>
  TERCEL_ALWAYS_INLINE Element element(int64_t i) const {
    if constexpr (std::is_same_v<Element, uint64_t>)
      return key(i) << position_bits | static_cast<uint64_t>(i);
    else
      return {key(i), static_cast<uint64_t>(i)};
  }
};

struct PackedKeys {
  const uint64_t* elements;
  int32_t position_bits;

  TERCEL_ALWAYS_INLINE uint64_t key(int64_t i) const { return elements[i] >> position_bits; }
  TERCEL_ALWAYS_INLINE int64_t position(int64_t i) const {
    return static_cast<int64_t>(elements[i] & ((uint64_t{1} << position_bits) - 1));
  }
  template <class Element>
  TERCEL_ALWAYS_INLINE uint64_t element(int64_t i) const {
    return elements[i];
  }
};

struct WideKeys {
  const WideElement* elements;

  TERCEL_ALWAYS_INLINE uint64_t key(int64_t i) const { return elements[i].key; }
  TERCEL_ALWAYS_INLINE int64_t position(int64_t i) const { return static_cast<int64_t>(elements[i].position); }
  template <class Element>
  TERCEL_ALWAYS_INLINE WideElement element(int64_t i) const {
    return elements[i];
  }
};

/** Calls fn with a PackedKeys or a WideKeys. */
template <class Fn>
TERCEL_ALWAYS_INLINE decltype(auto) visit_sorted(const SortedKeys& sorted, Fn fn) {
  if (sorted.wide) return fn(WideKeys{static_cast<const WideElement*>(sorted.elements)});
  return fn(PackedKeys{static_cast<const uint64_t*>(sorted.elements), sorted.position_bits});
}

/** The original key. */
TERCEL_ALWAYS_INLINE int64_t original_key(const SortedKeys& sorted, uint64_t key) {
  const uint64_t base = static_cast<uint64_t>(sorted.base);
  return static_cast<int64_t>(sorted.descending ? base - key : base + key);
}

}  // namespace tercel::TERCEL_ISA
