// Reading one element from memory.
//
// Note [Bools in memory]
// A bool is a byte, 0 or 1, but memory that comes from elsewhere (a view of uint8, an array of another library, a file)
// may hold any other byte, which also means true. Reading such a bool is undefined in C++. So elements of dtype bool
// are read by load_element() or as bytes; ops that only move elements copy the bytes unchanged.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tercel/util/macros.h"

namespace tercel {

/** The element at p; see Note [Bools in memory]. */
template <class T>
TERCEL_HD T load_element(const T* p) {
  if constexpr (std::is_same_v<T, bool>)
    return *reinterpret_cast<const uint8_t*>(p) != 0;
  else
    return *p;
}

/** The same for elements that need not be aligned. */
template <class T>
T load_unaligned(const void* p) {
  if constexpr (std::is_same_v<T, bool>) {
    return load_element(static_cast<const bool*>(p));
  } else {
    T value;
    std::memcpy(&value, p, sizeof(T));
    return value;
  }
}

}  // namespace tercel
