// Selection by nonzero bytes.
//
//   for 64 bytes:  bits = nonzero bytes;  then vectors are compressed by these bits, or the bits are iterated
#include "tercel/ops/index/nonzero_kernels.h"

#include <cstring>

#include "tercel/ops/common/cpu/simd.h"
#include "tercel/ops/common/cpu/tile_io.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kBits = 64;

/** Bit i: whether byte i is nonzero. */
TERCEL_ALWAYS_INLINE uint64_t bits_of(const uint8_t* truth) {
#if TERCEL_ISA_LEVEL == 2
  const __m512i bytes = _mm512_loadu_si512(truth);
  return _mm512_test_epi8_mask(bytes, bytes);
#else
  uint64_t zeros = 0;
  for (int64_t i = 0; i < kBits; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(truth + i));
    const auto zero = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128())));
    zeros |= uint64_t{zero} << i;
  }
  return ~zeros;
#endif
}

/** Calls visit(i, bits) for each 64 bytes, the last ones padded with zeros. */
template <class Visit>
TERCEL_ALWAYS_INLINE void for_each_word(const uint8_t* truth, int64_t n, Visit visit) {
  int64_t i = 0;
  for (; i + kBits <= n; i += kBits) visit(i, bits_of(truth + i));
  if (i == n) return;
  uint8_t rest[kBits] = {};
  std::memcpy(rest, truth + i, static_cast<size_t>(n - i));
  visit(i, bits_of(rest));
}

template <class Item>
void take(const void* x, const uint8_t* truth, int64_t n, void* out) {
  const auto* from = static_cast<const Item*>(x);
  auto* to = static_cast<Item*>(out);
  for_each_word(truth, n, [&](int64_t i, uint64_t bits) {
#if TERCEL_ISA_LEVEL == 2
    if constexpr (sizeof(Item) == 4 || sizeof(Item) == 8) {
      constexpr int kSize = 64 / sizeof(Item);
      constexpr uint64_t kAll = (uint64_t{1} << kSize) - 1;
      for (int64_t at = i; bits != 0; bits >>= kSize, at += kSize) {
        const uint64_t chosen = bits & kAll;
        const int count = __builtin_popcountll(chosen);
        const auto kept = (uint64_t{1} << count) - 1;
        if constexpr (sizeof(Item) == 4)
          _mm512_mask_storeu_epi32(
              to, static_cast<__mmask16>(kept),
              _mm512_maskz_compress_epi32(static_cast<__mmask16>(chosen),
                                          _mm512_maskz_loadu_epi32(static_cast<__mmask16>(chosen), from + at)));
        else
          _mm512_mask_storeu_epi64(
              to, static_cast<__mmask8>(kept),
              _mm512_maskz_compress_epi64(static_cast<__mmask8>(chosen),
                                          _mm512_maskz_loadu_epi64(static_cast<__mmask8>(chosen), from + at)));
        to += count;
      }
      return;
    }
#endif
    for (; bits != 0; bits &= bits - 1) *to++ = from[i + __builtin_ctzll(bits)];
  });
}

}  // namespace

int64_t count_true(const uint8_t* truth, int64_t n) {
  int64_t count = 0;
  for_each_word(truth, n, [&](int64_t, uint64_t bits) { count += __builtin_popcountll(bits); });
  return count;
}

void true_positions(const uint8_t* truth, int64_t n, int64_t first, int64_t* out) {
  for_each_word(truth, n, [&](int64_t i, uint64_t bits) {
#if TERCEL_ISA_LEVEL == 2
    __m512i here = _mm512_add_epi64(_mm512_set1_epi64(first + i), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    for (; bits != 0; bits >>= 8) {
      const auto chosen = static_cast<__mmask8>(bits & 0xff);
      const int count = __builtin_popcount(chosen);
      _mm512_mask_storeu_epi64(out, static_cast<__mmask8>((1u << count) - 1),
                               _mm512_maskz_compress_epi64(chosen, here));
      out += count;
      here = _mm512_add_epi64(here, _mm512_set1_epi64(8));
    }
#else
    for (; bits != 0; bits &= bits - 1) *out++ = first + i + __builtin_ctzll(bits);
#endif
  });
}

void true_elements(const void* x, size_t item, const uint8_t* truth, int64_t n, void* out) {
  switch (item) {
    case 1: return take<Item1>(x, truth, n, out);
    case 2: return take<Item2>(x, truth, n, out);
    case 4: return take<Item4>(x, truth, n, out);
    case 8: return take<Item8>(x, truth, n, out);
    default: return take<Item16>(x, truth, n, out);
  }
}

}  // namespace tercel::TERCEL_ISA
