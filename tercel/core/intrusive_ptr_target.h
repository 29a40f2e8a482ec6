// Base class of reference-counted objects: both counts, and the only code that changes them.
//
// Note [Counts in one word]
// An object keeps both counts in one 64-bit word: strong in the low half, weak in the high half. While strong > 0 the
// strong owners together hold one weak reference, so the object's memory lives until weak reaches zero. Because both
// counts are one word, a single load can tell "I am the last owner of either kind", and the last owner then skips both
// atomic read-modify-writes.
//
// Note [Counts of one thread]
// A locked read-modify-write costs 5 ns, and a view needs four of them. While a process has one thread, which glibc
// tells in a variable that turns false before a second thread starts, a plain load and store are enough.
//
// Note [Death is monotonic]
// strong never goes from 0 to 1: weak_intrusive_ptr::lock() increments only a positive count, and plain increments
// assert (in debug builds) that the count was positive. When strong reaches zero while weak references remain,
// release_resources() runs once, and the destructor follows when the last weak reference goes.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

#include "tercel/util/export.h"
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace tercel {

namespace detail {

constexpr uint64_t kOneStrong = 1;
constexpr uint64_t kOneWeak = uint64_t{1} << 32;
constexpr uint64_t kUniqueOwner = kOneStrong | kOneWeak;

constexpr uint32_t strong_of(uint64_t counts) { return static_cast<uint32_t>(counts); }
constexpr uint32_t weak_of(uint64_t counts) { return static_cast<uint32_t>(counts >> 32); }

struct Counts;

}  // namespace detail

/** Base of reference-counted objects. Copying or moving the object never moves its counts. */
class TERCEL_API intrusive_ptr_target {
 public:
  constexpr intrusive_ptr_target() noexcept = default;
  constexpr intrusive_ptr_target(const intrusive_ptr_target&) noexcept {}
  constexpr intrusive_ptr_target(intrusive_ptr_target&&) noexcept {}
  intrusive_ptr_target& operator=(const intrusive_ptr_target&) noexcept { return *this; }
  intrusive_ptr_target& operator=(intrusive_ptr_target&&) noexcept { return *this; }

 protected:
  // An object on the stack, or one whose constructor threw, was never owned; any other must have lost its last owner.
  virtual ~intrusive_ptr_target() {
    assert(static_cast<uint32_t>(counts_.load()) == 0 && "destroyed while somebody still owns it");
  }

 private:
  friend struct detail::Counts;

  /** Drops what the object owns when its last strong owner goes while weak references remain. */
  virtual void release_resources();

  mutable std::atomic<uint64_t> counts_{0};
};

namespace detail {

/** Whether this is the only thread, by glibc 2.32's variable. */
inline bool single_threaded() {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

/** The only code that touches the counts. */
struct Counts {
  // See Note [Counts of one thread].
  static uint64_t add(std::atomic<uint64_t>& counts, uint64_t change, std::memory_order order) {
    if (!single_threaded()) return counts.fetch_add(change, order);
    const uint64_t before = counts.load(std::memory_order_relaxed);
    counts.store(before + change, std::memory_order_relaxed);
    return before;
  }

  static uint64_t load(const intrusive_ptr_target* t) { return t->counts_.load(std::memory_order_acquire); }

  /** Gives a new object its first owner; no other thread can see it yet. */
  static void adopt(const intrusive_ptr_target* t) {
    assert(load(t) == 0 && "a new object already has owners: its constructor made a pointer to itself");
    t->counts_.store(kUniqueOwner, std::memory_order_relaxed);
  }
  static void increment_strong(const intrusive_ptr_target* t) {
    [[maybe_unused]] const uint64_t before = add(t->counts_, kOneStrong, std::memory_order_relaxed);
    assert(strong_of(before) != 0 && "intrusive_ptr: Cannot increase refcount after it reached zero.");
  }
  static void increment_weak(const intrusive_ptr_target* t) {
    [[maybe_unused]] const uint64_t before = add(t->counts_, kOneWeak, std::memory_order_relaxed);
    assert(weak_of(before) != 0 && "weak_intrusive_ptr: Cannot increase refcount after it reached zero.");
  }
  static void decrement_strong(intrusive_ptr_target* t) {
    if (load(t) == kUniqueOwner) {
      // See Note [Counts in one word]: no other owner of either kind exists, so none can appear.
      t->counts_.store(0, std::memory_order_relaxed);
      delete t;
      return;
    }
    const uint64_t before = add(t->counts_, -kOneStrong, std::memory_order_acq_rel);
    if (strong_of(before) == 1) [[unlikely]]
      die(t, before);
  }
  /** The last strong owner is gone, and there were weak ones. */
  TERCEL_API static void die(intrusive_ptr_target* t, uint64_t counts_before);
  static void decrement_weak(intrusive_ptr_target* t) {
    if (weak_of(add(t->counts_, -kOneWeak, std::memory_order_acq_rel)) == 1) delete t;
  }
  /** Takes a strong reference if the object is alive; else returns false. */
  static bool lock(const intrusive_ptr_target* t) {
    uint64_t counts = load(t);
    do {
      if (strong_of(counts) == 0) return false;
    } while (!t->counts_.compare_exchange_weak(counts, counts + kOneStrong, std::memory_order_acq_rel,
                                               std::memory_order_acquire));
    return true;
  }
};

}  // namespace detail

/** Reference counting for callers that hold raw pointers (C interfaces, Python objects). */
namespace raw {
inline void incref(intrusive_ptr_target* t) { detail::Counts::increment_strong(t); }
inline void decref(intrusive_ptr_target* t) { detail::Counts::decrement_strong(t); }
inline uint32_t use_count(const intrusive_ptr_target* t) { return detail::strong_of(detail::Counts::load(t)); }
/** A weak reference to an object with a strong owner; give it back with weak_decref(). */
inline intrusive_ptr_target* make_weak(intrusive_ptr_target* t) {
  detail::Counts::increment_weak(t);
  return t;
}
inline uint32_t weak_use_count(const intrusive_ptr_target* t) { return detail::weak_of(detail::Counts::load(t)); }
inline void weak_incref(intrusive_ptr_target* t) { detail::Counts::increment_weak(t); }
inline void weak_decref(intrusive_ptr_target* t) { detail::Counts::decrement_weak(t); }
/** True, with a strong reference taken, if the object is still alive. */
inline bool lock(intrusive_ptr_target* t) { return detail::Counts::lock(t); }
}  // namespace raw

}  // namespace tercel
