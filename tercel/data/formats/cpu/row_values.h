// Parts of a row that kernels of several formats decode. Values are checked without branches, one result per row.
//
// Note [Overlapping vectors]
// Rows have few values of a kind, such as 13 or 26: a loop of vectors would leave many to a scalar rest. The last
// vector is moved back to end with the last value instead, and repeats some of the one before; so out must not be in.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "tercel/data/cpu/lanes.h"
#include "tercel/data/formats/row_decode_kernels.h"
#include "tercel/util/macros.h"

namespace tercel::TERCEL_ISA {

constexpr uint32_t kSign = 0x80000000;
constexpr uint32_t kOne = 0x3f800000;

// Mixed rows are scattered over a window larger than the inner caches: prefetched early, they arrive while others are
// decoded.
constexpr int64_t kPrefetchRows = 4;
constexpr int64_t kPrefetchBytes =
    1024;  // the number of outstanding requests of a core; the hardware prefetches the rest
constexpr int64_t kCacheLine = 64;

/** Where the row of a place begins; prefetches a later one. */
TERCEL_ALWAYS_INLINE const std::byte* row_of(const RowsLoop& loop, int64_t place, int64_t end) {
  if (loop.mix == nullptr) return loop.rows + place * loop.row_bytes;
  if (place + kPrefetchRows < end) {
    const std::byte* later = loop.rows + int64_t{loop.mix[place + kPrefetchRows]} * loop.row_bytes;
    const int64_t bytes = std::min(loop.row_bytes, kPrefetchBytes);
    for (int64_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(later + i);
  }
  return loop.rows + int64_t{loop.mix[place]} * loop.row_bytes;
}

/** Copies floats; false if one is not finite. See Note [Overlapping vectors]. */
TERCEL_ALWAYS_INLINE bool copy_floats(const std::byte* from, int64_t count, float* out) {
  if (count < kFloatLanes) {
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto bits = load_as<uint32_t>(from + 4 * i);
      bad |= (bits & kExponent) == kExponent ? 1u : 0u;
      out[i] = std::bit_cast<float>(bits);
    }
    return bad == 0;
  }
  using Bits = RowSimd<uint32_t, kFloatLanes>;
  Bits bad{};
  for (int64_t at = 0; at < count; at += kFloatLanes) {
    const int64_t i = std::min(at, count - kFloatLanes);
    const auto bits = load_as<Bits>(from + 4 * i);
    bad |= reinterpret_cast<Bits>((bits & kExponent) == kExponent);
    store_as(out + i, bits);
  }
  return !any_bit(bad);
}

/** Copies labels, which are i32 if not floats; false if one breaks its rule. */
TERCEL_ALWAYS_INLINE bool decode_labels(const RowsLoop& loop, bool floats, const std::byte* from, float* out) {
  bool good = true;
  for (int64_t i = 0; i < loop.label_dim; ++i) {
    auto bits = load_as<uint32_t>(from + 4 * i);
    if (!floats) bits = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(bits)));
    good &= loop.binary_labels ? ((bits & ~kSign) == 0) | (bits == kOne) : (bits & kExponent) != kExponent;
    out[i] = std::bit_cast<float>(bits);
  }
  return good;
}

}  // namespace tercel::TERCEL_ISA
