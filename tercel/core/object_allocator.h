// Allocator of standard containers, backed by the caches for tensor headers and graph nodes.
#pragma once

#include <cstddef>

#include "tercel/core/allocator.h"

namespace tercel {

/** For std::vector on hot paths: up to 512 bytes come from the caches, more from operator new. */
template <class T>
struct ObjectAllocator {
  static_assert(alignof(T) <= 16);
  using value_type = T;

  ObjectAllocator() = default;
  template <class U>
  ObjectAllocator(const ObjectAllocator<U>&) noexcept {}

  T* allocate(size_t n) { return static_cast<T*>(detail::allocate_object(n * sizeof(T))); }
  void deallocate(T* p, size_t n) noexcept { detail::free_object(p, n * sizeof(T)); }

  template <class U>
  friend bool operator==(const ObjectAllocator&, const ObjectAllocator<U>&) {
    return true;
  }
};

}  // namespace tercel
