// Sorting of entries by their keys.
//
// Note [Sorted entries]
// An entry is an integer key of known width and a payload: its value, or its position. Entries are first moved to
// buckets by the high bits of their keys, which puts entries that belong together into the L2 cache; each bucket is
// then sorted by radix from the lowest bit that matters. Both steps are stable, so the order does not depend on the
// number of threads. This reads and writes main memory once, where a radix sort of everything would do so for each
// digit.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"

namespace tercel::sparse_ops {

template <class Key, class Payload>
struct Entry {
  Key key;
  Payload payload;
};

/** Entries by buckets, in order; the key of an entry of bucket b is b << shift | entry.key. */
template <class Key, class Payload>
struct EntryBuckets {
  Tensor memory;
  std::vector<int64_t> begins;  ///< of each bucket, and the end
  int shift = 0;

  int64_t buckets() const { return static_cast<int64_t>(begins.size()) - 1; }
  int64_t begin(int64_t bucket) const { return begins[static_cast<size_t>(bucket)]; }
  Entry<Key, Payload>* entries() const { return static_cast<Entry<Key, Payload>*>(memory.data_ptr()); }
  uint64_t key(int64_t bucket, const Entry<Key, Payload>& entry) const {
    // A shift of 64 bits, of the only bucket, is undefined.
    return (shift < 64 ? static_cast<uint64_t>(bucket) << shift : 0) | static_cast<uint64_t>(entry.key);
  }
};

namespace detail {

constexpr int64_t kBucketEntries = 8192;
constexpr int kMaxBucketBits = 11;
constexpr int64_t kSortGrain = 16384;

/** The bits by which buckets are made. */
inline int bucket_bits(int64_t n, int sorted_bits) {
  return std::min(
      {static_cast<int>(std::bit_width(static_cast<uint64_t>(n / kBucketEntries))), kMaxBucketBits, sorted_bits});
}

/** Sorts by the bits [low, high) of the keys; `other` has room for as many. */
template <class E>
void sort_bucket(E* entries, E* other, int64_t n, int low, int high) {
  if (n < 2 || low >= high) return;
  const auto sorted_key = [low](const E& e) { return static_cast<uint64_t>(e.key) >> low; };
  if (n <= 32) {
    for (int64_t i = 1; i < n; ++i) {
      const E e = entries[i];
      int64_t at = i;
      for (; at > 0 && sorted_key(entries[at - 1]) > sorted_key(e); --at) entries[at] = entries[at - 1];
      entries[at] = e;
    }
    return;
  }
  // Wider digits than the number of entries would spend their time on counters.
  const int widest = std::clamp(static_cast<int>(std::bit_width(static_cast<uint64_t>(n))), 4, 11);
  const int passes = ceil_div(high - low, widest), digit = ceil_div(high - low, passes);
  const uint64_t mask = (uint64_t{1} << digit) - 1;
  uint32_t counts[1 << 11];
  E *from = entries, *to = other;
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = low + pass * digit;
    std::fill_n(counts, mask + 1, 0u);
    for (int64_t i = 0; i < n; ++i) ++counts[(static_cast<uint64_t>(from[i].key) >> shift) & mask];
    uint32_t next = 0;
    for (uint64_t d = 0; d <= mask; ++d) next += std::exchange(counts[d], next);
    for (int64_t i = 0; i < n; ++i) to[counts[(static_cast<uint64_t>(from[i].key) >> shift) & mask]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::copy_n(from, n, entries);
}

}  // namespace detail

/**
 * Sorts the n < 2^32 entries of a source by the bits [low, high) of their keys, which have `high` bits, of which those
 * below the buckets' fit in Key. `source.units()` units hold the entries in order; `source.visit(begin, end, f)` calls
 * f(key, payload) for each entry of units [begin, end), and `source.grain()` units are worth another thread.
 */
template <class Key, class Payload, class Source>
EntryBuckets<Key, Payload> sort_entries(const Source& source, int64_t n, int low, int high) {
  using E = Entry<Key, Payload>;
  const int bits = detail::bucket_bits(n, high - low);
  const int64_t buckets = int64_t{1} << bits;
  EntryBuckets<Key, Payload> out;
  out.shift = high - bits;
  out.memory = empty({n * static_cast<int64_t>(sizeof(E))}, kUInt8);
  E* entries = out.entries();
  const auto bucket_of = [&](uint64_t key) { return bits == 0 ? 0 : key >> out.shift; };
  const uint64_t mask = bits == 0 ? ~uint64_t{0} : (uint64_t{1} << out.shift) - 1;

  const Partition partition(0, source.units(), source.grain());
  std::vector<int64_t> counts(static_cast<size_t>(partition.chunks() * buckets));
  partition.run([&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t* count = counts.data() + chunk * buckets;
    source.visit(begin, end, [&](uint64_t key, Payload) { ++count[bucket_of(key)]; });
  });
  out.begins.assign(static_cast<size_t>(buckets) + 1, n);
  int64_t next = 0, largest = 0;
  for (int64_t b = 0; b < buckets; ++b) {
    out.begins[static_cast<size_t>(b)] = next;
    const int64_t first = next;
    for (int64_t chunk = 0; chunk < partition.chunks(); ++chunk)
      next += std::exchange(counts[static_cast<size_t>(chunk * buckets + b)], next);
    largest = std::max(largest, next - first);
  }
  partition.run([&](int64_t chunk, int64_t begin, int64_t end) {
    int64_t* at = counts.data() + chunk * buckets;
    source.visit(begin, end, [&](uint64_t key, Payload payload) {
      entries[at[bucket_of(key)]++] = E{static_cast<Key>(key & mask), payload};
    });
  });
  parallel_for(0, buckets, ceil_div(detail::kSortGrain, std::max<int64_t>(1, n / buckets)),
               [&](int64_t begin, int64_t end) {
                 const Tensor scratch = empty({largest * static_cast<int64_t>(sizeof(E))}, kUInt8);
                 for (int64_t b = begin; b < end; ++b)
                   detail::sort_bucket(entries + out.begin(b), static_cast<E*>(scratch.data_ptr()),
                                       out.begin(b + 1) - out.begin(b), low, out.shift);
               });
  return out;
}

/** Calls f.template operator()<Key>() with the type that holds keys of the bits [low, high) of n entries. */
template <class F>
decltype(auto) with_key_type(int64_t n, int low, int high, F&& f) {
  return high - detail::bucket_bits(n, high - low) <= 32 ? f.template operator()<uint32_t>()
                                                         : f.template operator()<uint64_t>();
}

}  // namespace tercel::sparse_ops
