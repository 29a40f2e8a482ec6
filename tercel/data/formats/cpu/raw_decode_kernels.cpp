// The hot loop of Raw and RawAsync. Every value is checked without branches, one result per row; loops over the values
// of a row are simple enough to become vector code.
#include "tercel/data/formats/raw_decode_kernels.h"

#include <algorithm>
#include <bit>

namespace tercel::TERCEL_ISA {

namespace {

/** A number at any address, as rows have them. */
template <class T>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
  T value;
};
using UnalignedU32 = Unaligned<uint32_t>;

constexpr uint32_t kExponent = 0x7f800000;  // all ones: infinite or NaN
constexpr uint32_t kSign = 0x80000000;
constexpr uint32_t kOne = 0x3f800000;

// Mixed rows are scattered over a window: prefetched early, they arrive while others are decoded.
constexpr int64_t kPrefetchRows = 4;
constexpr int64_t kPrefetchBytes = 1024;
constexpr int64_t kCacheLine = 64;

void prefetch(const std::byte* from, int64_t bytes) {
  bytes = std::min(bytes, kPrefetchBytes);
  for (int64_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(from + i);
}

/** Copies floats; nonzero if one is not finite. */
uint32_t copy_floats(const UnalignedU32* __restrict from, int64_t count, float* __restrict out) {
  uint32_t bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = from[i].value;
    bad |= (bits & kExponent) == kExponent ? 1u : 0u;
    out[i] = std::bit_cast<float>(bits);
  }
  return bad;
}

uint32_t decode_labels(const RawRowsLoop& loop, const UnalignedU32* from, float* out) {
  uint32_t bad = 0;
  for (int64_t i = 0; i < loop.label_dim; ++i) {
    uint32_t bits = from[i].value;
    if (!loop.float_labels) bits = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(bits)));
    const bool good = loop.binary_labels ? ((bits & ~kSign) == 0) | (bits == kOne) : (bits & kExponent) != kExponent;
    bad |= good ? 0u : 1u;
    out[i] = std::bit_cast<float>(bits);
  }
  return bad;
}

uint32_t decode_integers(const RawRowsLoop& loop, const UnalignedU32* from, float* out) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < loop.dense_dim; ++i) largest = std::max(largest, uint32_t{from[i].value});
  if (largest < static_cast<uint32_t>(loop.num_logs)) {
    for (int64_t i = 0; i < loop.dense_dim; ++i) out[i] = loop.logs[from[i].value];
    return 0;
  }
  uint32_t bad = 0;
  for (int64_t i = 0; i < loop.dense_dim; ++i) {
    out[i] = loop.log(static_cast<int32_t>(from[i].value));
    bad |= (std::bit_cast<uint32_t>(out[i]) & kExponent) == kExponent ? 1u : 0u;
  }
  return bad;
}

/** Copies keys; nonzero if one is out of its range. Two loops, as the compiler leaves one of both widths scalar. */
template <class Key>
Key copy_keys(const Unaligned<Key>* __restrict from, const Key* __restrict first, const Key* __restrict range,
              int64_t count, int64_t* __restrict out) {
  Key bad = 0;
  for (int64_t i = 0; i < count; ++i) bad |= from[i].value - first[i] > range[i] ? 1u : 0u;
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(uint64_t{from[i].value});
  return bad;
}

/** The keys of a row. */
template <class Key>
bool decode_keys(const RawRowsLoop& loop, const std::byte* from, int64_t place) {
  const auto* first = static_cast<const Key*>(loop.first_key);
  const auto* range = static_cast<const Key*>(loop.key_range);
  const int64_t* offset = loop.key_offset;
  Key bad = 0;
  for (int64_t i = 0; i < loop.num_inputs; ++i) {
    const int64_t nnz = loop.inputs[i].nnz;
    int64_t* out = loop.inputs[i].keys + place * nnz;
    bad |= copy_keys(reinterpret_cast<const Unaligned<Key>*>(from), first, range, nnz, out);
    if (offset != nullptr) {
      for (int64_t k = 0; k < nnz; ++k) out[k] += offset[k];
      offset += nnz;
    }
    from += nnz * static_cast<int64_t>(sizeof(Key));
    first += nnz;
    range += nnz;
  }
  return bad == 0;
}

}  // namespace

int64_t decode_raw_rows(const RawRowsLoop& loop, int64_t begin, int64_t end) {
  for (int64_t place = begin; place < end; ++place) {
    if (loop.mix != nullptr && place + kPrefetchRows < end)
      prefetch(loop.rows + int64_t{loop.mix[place + kPrefetchRows]} * loop.row_bytes, loop.row_bytes);
    const int64_t row = loop.mix != nullptr ? int64_t{loop.mix[place]} : place;
    const auto* numbers = reinterpret_cast<const UnalignedU32*>(loop.rows + row * loop.row_bytes);
    const int64_t to = place - begin;
    uint32_t bad = decode_labels(loop, numbers, loop.labels + to * loop.label_dim);
    numbers += loop.label_dim;
    float* dense = loop.dense + to * loop.dense_dim;
    bad |= loop.float_dense ? copy_floats(numbers, loop.dense_dim, dense) : decode_integers(loop, numbers, dense);
    const auto* keys = reinterpret_cast<const std::byte*>(numbers + loop.dense_dim);
    const bool good_keys =
        loop.wide_keys ? decode_keys<uint64_t>(loop, keys, to) : decode_keys<uint32_t>(loop, keys, to);
    if (bad != 0 || !good_keys) return place;
  }
  return -1;
}

}  // namespace tercel::TERCEL_ISA
