// The hot loop of Raw and RawAsync.
#include "tercel/data/formats/raw_decode_kernels.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "tercel/data/formats/cpu/row_values.h"

namespace tercel::TERCEL_ISA {

namespace {

/** Logarithms of integer dense values; false if one is not finite. */
TERCEL_ALWAYS_INLINE bool decode_integers(const RawRowsLoop& loop, const std::byte* from, float* out) {
  const int64_t count = loop.dense_dim;
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, load_as<uint32_t>(from + 4 * i));
  if (largest < static_cast<uint32_t>(loop.num_logs)) {
    const float* logs = loop.logs;
    for (int64_t i = 0; i < count; ++i) out[i] = logs[load_as<uint32_t>(from + 4 * i)];
    return true;
  }
  uint32_t bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    out[i] = loop.log(load_as<int32_t>(from + 4 * i));
    bad |= (std::bit_cast<uint32_t>(out[i]) & kExponent) == kExponent ? 1u : 0u;
  }
  return bad == 0;
}

/** Copies the keys from `i` on and adds offsets; all ones in the lanes of those out of their range. */
template <class Key, int Lanes, bool Add>
TERCEL_ALWAYS_INLINE RowSimd<uint64_t, Lanes> copy_keys(const std::byte* from, const uint64_t* first,
                                                        const uint64_t* range, const int64_t* offset, int64_t i,
                                                        int64_t* out) {
  using Wide = RowSimd<uint64_t, Lanes>;
  Wide keys;
  if constexpr (Lanes == 1)
    keys = load_as<Key>(from + i * static_cast<int64_t>(sizeof(Key)));
  else
    keys = __builtin_convertvector(load_as<RowSimd<Key, Lanes>>(from + i * static_cast<int64_t>(sizeof(Key))), Wide);
  const Wide bad = greater(static_cast<Wide>(keys - load_as<Wide>(first + i)), load_as<Wide>(range + i));
  if constexpr (Add) keys += load_as<Wide>(offset + i);
  store_as(out + i, keys);
  return bad;
}

/** The keys of a row; false if one is out of its range. See Note [Overlapping vectors]. */
template <class Key, bool Add>
TERCEL_ALWAYS_INLINE bool decode_keys(const RawRowsLoop& loop, const std::byte* from, int64_t place) {
  const uint64_t* first = loop.first_key;
  const uint64_t* range = loop.key_range;
  const int64_t* offset = loop.key_offset;
  RowSimd<uint64_t, kKeyLanes> bad{};
  uint64_t bad_rest = 0;
  for (const RowsLoop::Input *input = loop.inputs, *end = input + loop.num_inputs; input != end; ++input) {
    const int64_t nnz = input->nnz;
    int64_t* out = input->keys + place * nnz;
    if (nnz < kKeyLanes) {
      for (int64_t i = 0; i < nnz; ++i) bad_rest |= copy_keys<Key, 1, Add>(from, first, range, offset, i, out);
    } else {
      for (int64_t i = 0; i < nnz; i += kKeyLanes)
        bad |= copy_keys<Key, kKeyLanes, Add>(from, first, range, offset, std::min(i, nnz - kKeyLanes), out);
    }
    from += nnz * static_cast<int64_t>(sizeof(Key));
    first += nnz;
    range += nnz;
    if constexpr (Add) offset += nnz;
  }
  return bad_rest == 0 && !any_bit(bad);
}

template <class Key, bool Add>
int64_t decode_rows(const RawRowsLoop& of, int64_t begin, int64_t end) {
  const RawRowsLoop loop = of;  // which no store can change
  for (int64_t place = begin; place < end; ++place) {
    const std::byte* from = row_of(loop, place, end);
    const int64_t to = place - begin;
    bool good = decode_labels(loop, loop.float_labels, from, loop.labels + to * loop.label_dim);
    from += 4 * loop.label_dim;
    float* dense = loop.dense + to * loop.dense_dim;
    good &= loop.float_dense ? copy_floats(from, loop.dense_dim, dense) : decode_integers(loop, from, dense);
    good &= decode_keys<Key, Add>(loop, from + 4 * loop.dense_dim, to);
    if (!good) return place;
  }
  return -1;
}

}  // namespace

int64_t decode_raw_rows(const RawRowsLoop& loop, int64_t begin, int64_t end) {
  const bool add = loop.key_offset != nullptr;
  if (loop.wide_keys)
    return add ? decode_rows<uint64_t, true>(loop, begin, end) : decode_rows<uint64_t, false>(loop, begin, end);
  return add ? decode_rows<uint32_t, true>(loop, begin, end) : decode_rows<uint32_t, false>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
