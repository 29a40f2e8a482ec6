// Keys that occurred too rarely to have a row, in the order in which they came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tercel/util/export.h"

namespace tercel::recsys {

/** A list of keys with counts. Each has a place, a number that stays the same until it is removed. */
class TERCEL_API WaitingKeys {
 public:
  int64_t size() const { return size_; }
  /** Adds a key at the end; returns its place. The caller ensures that it is not there. */
  int64_t add(int64_t key, int64_t count);
  /** Removes the key of a place, which another one may get. */
  void remove(int64_t place);
  int64_t& count(int64_t place) { return entries_[static_cast<size_t>(place)].count; }
  /** The place of the key that came first; there must be one. */
  int64_t oldest() const { return first_; }
  int64_t key(int64_t place) const { return entries_[static_cast<size_t>(place)].key; }
  /** Calls f(key, count) for each, the oldest first. */
  template <class F>
  void for_each(F&& f) const {
    for (int64_t place = first_; place != kNone; place = entries_[static_cast<size_t>(place)].next)
      f(entries_[static_cast<size_t>(place)].key, entries_[static_cast<size_t>(place)].count);
  }

 private:
  static constexpr int64_t kNone = -1;
  struct Entry {
    int64_t key, count, before, next;  // of a free one, `next` is another free one
  };

  std::vector<Entry> entries_;
  int64_t first_ = kNone, last_ = kNone, free_ = kNone, size_ = 0;
};

}  // namespace tercel::recsys
