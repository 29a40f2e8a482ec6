// Stable sorting of 64-bit integer keys, together with their original positions.
//
// Note [Sorted elements]
// Radix sort, least significant digit first. Only the bits in which the keys differ are sorted: keys are stored as
// distances from the smallest (or, descending, from the largest). If these bits and those of a position fit in 64 bits,
// both are packed into one word, key << position_bits | position; otherwise they take two. Equal keys keep the order of
// their positions, so the result is the same for any number of threads.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/tensor.h"

namespace tercel {

/** A key and its position, if they do not fit in one word. */
struct WideElement {
  uint64_t key;
  uint64_t position;
};

/** Result of a sort: n elements, packed uint64_t or WideElement. Key i is base + k_i; descending, base - k_i. */
struct SortedKeys {
  const void* elements = nullptr;
  int64_t n = 0;
  int64_t base = 0;
  int32_t position_bits = 0;
  bool wide = false;
  bool descending = false;
};

struct KeyRange {
  int64_t smallest, largest;
};
/** Requires n > 0. */
using KeyRangeFn = KeyRange(const int64_t* keys, int64_t n);

/** One digit of a sort. */
struct RadixPass {
  const void* source;  ///< keys (if raw), or elements from the previous pass
  void* target;        ///< elements
  int64_t base;
  int32_t position_bits;
  int32_t shift;  ///< position of the digit in the key
  int32_t digit_bits;
  bool raw, wide, descending;
};
/** Adds the digits of elements [begin, end) to counts [2^digit_bits]. */
using RadixCountFn = void(const RadixPass& pass, int64_t begin, int64_t end, uint32_t* counts);
/** Moves elements [begin, end) to offsets[digit]++ of the target. */
using RadixScatterFn = void(const RadixPass& pass, int64_t begin, int64_t end, uint32_t* offsets);

/** Sorts a few keys, [sorted.n], into `memory`; the caller has set all fields but `elements`. */
using SortFewFn = void(const int64_t* keys, SortedKeys& sorted, void* memory);

constexpr int kMaxDigitBits = 11;
/** Up to this many keys are sorted by comparison. */
constexpr int64_t kFewKeys = 128;

TERCEL_DECLARE_KERNELS(KeyRangeFn, key_range)
TERCEL_DECLARE_KERNELS(SortFewFn, sort_few)
TERCEL_DECLARE_KERNELS(RadixCountFn, radix_count)
TERCEL_DECLARE_KERNELS(RadixScatterFn, radix_scatter)

}  // namespace tercel
