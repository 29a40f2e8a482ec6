// Replaces operator new and delete of a test program with counting versions that can be made to fail. At most one
// source of a program may include it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace tercel::test {

struct NewCounts {
  std::atomic<int64_t> news{0};     ///< calls of operator new
  std::atomic<int64_t> alive{0};    ///< blocks not yet deleted
  std::atomic<int64_t> fail_in{0};  ///< the n-th call from now on throws std::bad_alloc; 0: none
};
inline constinit NewCounts new_counts;

inline void* counted_new(size_t nbytes, size_t alignment) {
  ++new_counts.news;
  if (new_counts.fail_in > 0 && --new_counts.fail_in == 0) throw std::bad_alloc();
  void* p = nullptr;
  if (posix_memalign(&p, alignment < sizeof(void*) ? sizeof(void*) : alignment, nbytes) != 0) throw std::bad_alloc();
  ++new_counts.alive;
  return p;
}

inline void counted_delete(void* p) noexcept {
  if (p) --new_counts.alive;
  std::free(p);
}

}  // namespace tercel::test

// The array and sized variants call these, and without a sanitizer, whose own are called, the nothrow ones do.
void* operator new(size_t nbytes) { return tercel::test::counted_new(nbytes, alignof(std::max_align_t)); }
void* operator new(size_t nbytes, std::align_val_t alignment) {
  return tercel::test::counted_new(nbytes, static_cast<size_t>(alignment));
}
void* operator new(size_t nbytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(nbytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* p) noexcept { tercel::test::counted_delete(p); }
void operator delete(void* p, size_t) noexcept { tercel::test::counted_delete(p); }
void operator delete(void* p, std::align_val_t) noexcept { tercel::test::counted_delete(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { tercel::test::counted_delete(p); }
