// The hot loop of Norm files whose records have full slots.
#include "tercel/data/formats/norm_decode_kernels.h"

#include <immintrin.h>

#include <algorithm>
#include <type_traits>

#include "tercel/data/formats/cpu/row_values.h"

namespace tercel::TERCEL_ISA {

namespace {

/** The sum of the bytes modulo 256. */
TERCEL_ALWAYS_INLINE uint8_t sum_bytes(const std::byte* from, int64_t count) {
#if TERCEL_ISA_LEVEL == 2
  __m512i sums = _mm512_setzero_si512();
  for (; count >= 64; count -= 64, from += 64)
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(_mm512_loadu_si512(from), _mm512_setzero_si512()));
  const __m512i rest = _mm512_maskz_loadu_epi8((uint64_t{1} << count) - 1, from);
  sums = _mm512_add_epi64(sums, _mm512_sad_epu8(rest, _mm512_setzero_si512()));
  return static_cast<uint8_t>(_mm512_reduce_add_epi64(sums));
#else
#if TERCEL_ISA_LEVEL == 1
  using Register = __m256i;
  const auto sum = [](Register v) { return _mm256_sad_epu8(v, _mm256_setzero_si256()); };
#else
  using Register = __m128i;
  const auto sum = [](Register v) { return _mm_sad_epu8(v, _mm_setzero_si128()); };
#endif
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Register));
  RowSimd<uint64_t, kBytes / 8> sums{};
  const auto add = [&](Register v) { sums += load_as<RowSimd<uint64_t, kBytes / 8>>(&v); };
  uint64_t total = 0;
  int64_t at = 0;
  for (; at + kBytes <= count; at += kBytes) add(sum(load_as<Register>(from + at)));
  for (; at + 8 <= count; at += 8) {
    const __m128i words = _mm_sad_epu8(_mm_cvtsi64_si128(load_as<int64_t>(from + at)), _mm_setzero_si128());
    total += static_cast<uint64_t>(_mm_cvtsi128_si64(words));
  }
  for (; at < count; ++at) total += static_cast<uint8_t>(from[at]);
  for (int lane = 0; lane < kBytes / 8; ++lane) total += sums[lane];
  return static_cast<uint8_t>(total);
#endif
}

/** Counts and keys of consecutive slots of one key each. */
template <class Key>
constexpr int64_t kSlotBytes = 4 + static_cast<int64_t>(sizeof(Key));

/** A vector of keys; `bad` gets bits if a count is not 1. */
template <class Key>
TERCEL_ALWAYS_INLINE RowSimd<uint64_t, kKeyLanes> load_slots(const std::byte* from, RowSimd<uint64_t, kKeyLanes>& bad) {
  using Wide = RowSimd<uint64_t, kKeyLanes>;
  if constexpr (kKeyLanes == 1) {
    bad |= load_as<uint32_t>(from) ^ 1u;
    return load_as<Key>(from + 4);
  } else if constexpr (sizeof(Key) == 4) {
    const auto slots = load_as<Wide>(from);
    bad |= (slots << 32) ^ (uint64_t{1} << 32);
    return slots >> 32;
  }
#if TERCEL_ISA_LEVEL > 0
  else {
    // Slots are three words long: two registers that overlap by half of one hold all words of the lanes.
    using Words = RowSimd<uint32_t, 2 * kKeyLanes>;
    using Counts = RowSimd<uint32_t, kKeyLanes>;
    const auto a = load_as<Words>(from), b = load_as<Words>(from + 4 * kKeyLanes);
    Counts counts;
    Words keys;
#if TERCEL_ISA_LEVEL == 2
    counts = __builtin_shufflevector(a, b, 0, 3, 6, 9, 12, 15, 26, 29);
    keys = __builtin_shufflevector(a, b, 1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 24, 25, 27, 28, 30, 31);
#else
    counts = __builtin_shufflevector(a, b, 0, 3, 6, 13);
    keys = __builtin_shufflevector(a, b, 1, 2, 4, 5, 7, 12, 14, 15);
#endif
    bad |= __builtin_convertvector(counts ^ 1u, Wide);
    return reinterpret_cast<Wide>(keys);
  }
#endif
}

/** An input whose slots have one key each; false if one breaks a rule. See Note [Overlapping vectors]. */
template <class Key>
TERCEL_ALWAYS_INLINE bool decode_one_hot(const std::byte* from, int64_t slots, const uint64_t* first,
                                         const uint64_t* range, int64_t* out) {
  using Wide = RowSimd<uint64_t, kKeyLanes>;
  if (slots < kKeyLanes) {
    uint64_t bad = 0;
    for (int64_t s = 0; s < slots; ++s, from += kSlotBytes<Key>) {
      const uint64_t key = load_as<Key>(from + 4);
      bad |= (load_as<uint32_t>(from) ^ 1u) | greater(key - first[s], range[s]);
      out[s] = static_cast<int64_t>(key);
    }
    return bad == 0;
  }
  Wide bad{};
  for (int64_t at = 0; at < slots; at += kKeyLanes) {
    const int64_t s = std::min(at, slots - kKeyLanes);
    const Wide keys = load_slots<Key>(from + s * kSlotBytes<Key>, bad);
    bad |= greater(static_cast<Wide>(keys - load_as<Wide>(first + s)), load_as<Wide>(range + s));
    store_as(out + s, keys);
  }
  return !any_bit(bad);
}

/** An input of any slots, all full. */
template <class Key>
TERCEL_ALWAYS_INLINE bool decode_slots(const std::byte* from, int64_t slots, const int32_t* hotness,
                                       const uint64_t* first, const uint64_t* range, int64_t* out) {
  uint64_t bad = 0;
  for (int64_t s = 0; s < slots; ++s) {
    bad |= load_as<uint32_t>(from) ^ static_cast<uint32_t>(hotness[s]);
    from += 4;
    for (int32_t k = 0; k < hotness[s]; ++k, from += sizeof(Key)) {
      const uint64_t key = load_as<Key>(from);
      bad |= greater(key - *first++, *range++);
      *out++ = static_cast<int64_t>(key);
    }
  }
  return bad == 0;
}

template <class Key, bool Framed>
int64_t decode_rows(const NormRowsLoop& of, int64_t begin, int64_t end) {
  const NormRowsLoop loop = of;  // which no store can change
  const int64_t payload = loop.row_bytes - (Framed ? 5 : 0);
  for (int64_t place = begin; place < end; ++place) {
    const std::byte* from = row_of(loop, place, end);
    const int64_t to = place - begin;
    bool good = true;
    if constexpr (Framed) {
      good = load_as<int32_t>(from) == payload;
      from += 4;
      good &= sum_bytes(from, payload) == static_cast<uint8_t>(from[payload]);
    }
    good &= decode_labels(loop, true, from, loop.labels + to * loop.label_dim);
    from += 4 * loop.label_dim;
    good &= copy_floats(from, loop.dense_dim, loop.dense + to * loop.dense_dim);
    from += 4 * loop.dense_dim;
    const uint64_t *first = loop.first_key, *range = loop.key_range;
    const int32_t* hotness = loop.hotness;
    for (const RowsLoop::Input *input = loop.inputs, *last = input + loop.num_inputs; input != last; ++input) {
      int64_t* out = input->keys + to * input->nnz;
      good &= input->one_hot ? decode_one_hot<Key>(from, input->slot_num, first, range, out)
                             : decode_slots<Key>(from, input->slot_num, hotness, first, range, out);
      from += 4 * input->slot_num + static_cast<int64_t>(sizeof(Key)) * input->nnz;
      first += input->nnz;
      range += input->nnz;
      hotness += input->slot_num;
    }
    if (!good) return place;
  }
  return -1;
}

}  // namespace

int64_t decode_norm_rows(const NormRowsLoop& loop, int64_t begin, int64_t end) {
  if (loop.wide_keys)
    return loop.framed ? decode_rows<uint64_t, true>(loop, begin, end) : decode_rows<uint64_t, false>(loop, begin, end);
  return loop.framed ? decode_rows<uint32_t, true>(loop, begin, end) : decode_rows<uint32_t, false>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
