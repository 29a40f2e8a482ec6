// Numbers of 64-bit keys: a hash table that grows in small steps.
//
// Note [Key index]
// Extendible hashing (Fagin et al. 1979): the highest bits of a key's hash choose a segment of 4,096 entries of 16
// bytes, and its lowest ones a cache line of four in it, from which the search goes on line by line: most end in the
// first one, and within a line four comparisons cost less than a branch that is foreseen wrongly. A segment that is
// full is divided into two by the next bit, which takes some 30 us: no insertion waits for more. Segments are full at
// loads between 0.60 and 0.85, depending on their number, so that not all of them, which fill at the same rate, are
// divided in the same step. An entry takes at most 16 / 0.425 = 38 bytes on average, including those that are free.
//
// The hash is salted, other in each process: results never depend on the order of keys in the index, and nobody can
// choose keys that fall together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tercel/util/reserved_memory.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

/** A map from any 64-bit keys to numbers other than 0. Several threads may find(), or one may change it. */
class TERCEL_API KeyIndex {
 public:
  KeyIndex();

  /** How many keys have a number. */
  int64_t size() const { return size_; }
  /** Bytes in use, without what is not touched. */
  size_t bytes() const;
  /** The part of all entries that keys have. */
  double load() const {
    return static_cast<double>(size_) / (static_cast<double>(segments_.size()) * static_cast<double>(kEntries));
  }
  /** The number of a key, 0 if it has none. */
  int64_t find(int64_t key) const;
  /** The same for many keys, which overlaps their cache misses: numbers[i] of keys[i]. */
  void find(Span<int64_t> keys, int64_t* numbers) const;
  /**
   * The place of a key's number, 0 if it is new; it must be set to another number, and is valid until the next
   * insertion or removal.
   */
  int64_t& insert(int64_t key);
  /** Whether the key had a number; it has none then. */
  bool erase(int64_t key);
  /** Calls f(key, number) for each key, in no particular order. */
  template <class F>
  void for_each(F&& f) const {
    const auto* const entries = reinterpret_cast<const Entry*>(memory_.data());
    for (size_t i = 0; i < segments_.size() * kEntries; ++i)
      if (entries[i].number != 0) f(entries[i].key, entries[i].number);
  }

 private:
  struct Entry {
    int64_t key, number;  // number 0: free, as new memory is
  };
  struct Segment {
    uint32_t used = 0, depth = 0;  // the hashes of its keys have their first `depth` bits in common
  };
  static constexpr size_t kEntries = 4096;

  static int64_t find_in(const Entry* entries, size_t first, int64_t key);
  uint64_t hash(int64_t key) const;
  size_t segment_of(uint64_t hash) const { return directory_[depth_ == 0 ? 0 : hash >> (64 - depth_)]; }
  Entry* segment(size_t number) const { return reinterpret_cast<Entry*>(memory_.data()) + number * kEntries; }
  size_t add_segment(uint32_t depth);
  void divide(size_t number, uint64_t hash);

  ReservedMemory memory_;
  std::vector<Segment> segments_;
  std::vector<uint32_t> directory_;  // of 2^depth_
  uint32_t depth_ = 0;
  int64_t size_ = 0;
  uint64_t salt_;
  std::vector<Entry> scratch_;
};

}  // namespace tercel::recsys
