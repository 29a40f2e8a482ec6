// Selection by rank among integer keys K, int32_t or int64_t.
//
// Note [Order statistics of keys]
// For few keys, the rank of each is computed by counting the smaller ones, without branches. For many keys, the key of
// a rank is found digit by digit from the top: keys are counted by their first differing bits, and those in the bucket
// of the rank are kept. Arrays of keys have room for a vector after their end, since vectors read beyond it.
#pragma once

#include "tercel/ops/common/cpu/simd.h"
#include "tercel/ops/sort/key_sort_kernels.h"

namespace tercel::TERCEL_ISA {
namespace {

/** Bytes after the end of an array of keys that may be read, and written if it is a target. */
constexpr int64_t kKeySlack = 64;

/** Bit i: whether lane i of a is less than that of b. */
template <class K>
TERCEL_ALWAYS_INLINE uint32_t less_bits(Simd<K> a, Simd<K> b) {
#if TERCEL_ISA_LEVEL == 2
  if constexpr (sizeof(K) == 4)
    return _mm512_cmplt_epi32_mask(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b));
  else
    return _mm512_cmplt_epi64_mask(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b));
#elif TERCEL_ISA_LEVEL == 1
  if constexpr (sizeof(K) == 4)
    return static_cast<uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(a < b)));
  else
    return static_cast<uint32_t>(_mm256_movemask_pd(reinterpret_cast<__m256d>(a < b)));
#else
  if constexpr (sizeof(K) == 4)
    return static_cast<uint32_t>(_mm_movemask_ps(reinterpret_cast<__m128>(a < b)));
  else
    return static_cast<uint32_t>(_mm_movemask_pd(reinterpret_cast<__m128d>(a < b)));
#endif
}

/** counts, plus 1 in the lanes in which a is less than b. */
template <class K>
TERCEL_ALWAYS_INLINE Simd<K> count_less(Simd<K> counts, Simd<K> a, Simd<K> b) {
#if TERCEL_ISA_LEVEL == 2
  const __m512i c = reinterpret_cast<__m512i>(counts);
  const auto bits = less_bits<K>(a, b);
  if constexpr (sizeof(K) == 4)
    return reinterpret_cast<Simd<K>>(_mm512_mask_add_epi32(c, static_cast<__mmask16>(bits), c, _mm512_set1_epi32(1)));
  else
    return reinterpret_cast<Simd<K>>(_mm512_mask_add_epi64(c, static_cast<__mmask8>(bits), c, _mm512_set1_epi64(1)));
#else
  return counts - (a < b);
#endif
}

/** Calls visit(i, bits) for each vector of n keys: bit b says whether key i + b is chosen(vector). */
template <class K, class Chosen, class Visit>
TERCEL_ALWAYS_INLINE void for_each_chosen(const K* keys, int64_t n, Chosen chosen, Visit visit) {
  constexpr int64_t kSize = kLanes<K>;
  for (int64_t i = 0; i < n; i += kSize) {
    uint32_t bits = chosen(load(keys + i));
    if (n - i < kSize) bits &= (uint32_t{1} << (n - i)) - 1;
    visit(i, bits);
  }
}

/** Bits of the keys in a vector that are at most `bound`. */
template <class K>
TERCEL_ALWAYS_INLINE auto at_most(K bound) {
  const Simd<K> limit = broadcast(bound);
  return [limit](Simd<K> keys) {
    constexpr uint32_t kAll = (uint32_t{1} << kLanes<K>)-1;
    return less_bits<K>(limit, keys) ^ kAll;
  };
}
template <class K>
TERCEL_ALWAYS_INLINE auto equal_to(K key) {
  const Simd<K> same = broadcast(key);
  return [same](Simd<K> keys) {
    constexpr uint32_t kAll = (uint32_t{1} << kLanes<K>)-1;
    return (less_bits<K>(same, keys) | less_bits<K>(keys, same)) ^ kAll;
  };
}

/** Writes the positions of keys up to `bound`, in order; returns their number. Needs room for n and a vector. */
template <class K>
int64_t find_at_most(const K* keys, int64_t n, K bound, uint32_t* positions) {
  int64_t found = 0;
#if TERCEL_ISA_LEVEL == 2
  __m512i here = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i step = _mm512_set1_epi32(kLanes<K>);
  for_each_chosen<K>(keys, n, at_most(bound), [&](int64_t, uint32_t bits) {
    if (bits != 0) {
      _mm512_storeu_si512(positions + found, _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), here));
      found += __builtin_popcount(bits);
    }
    here = _mm512_add_epi32(here, step);
  });
#else
  for_each_chosen<K>(keys, n, at_most(bound), [&](int64_t i, uint32_t bits) {
    for (; bits != 0; bits &= bits - 1)
      positions[found++] = static_cast<uint32_t>(i) + static_cast<uint32_t>(__builtin_ctz(bits));
  });
#endif
  return found;
}

template <class K>
int64_t count_equal(const K* keys, int64_t n, K key) {
  int64_t count = 0;
  for_each_chosen<K>(keys, n, equal_to(key), [&](int64_t, uint32_t bits) { count += __builtin_popcount(bits); });
  return count;
}

/** Position of occurrence `which` (from 0) of `key`, which must exist. */
template <class K>
int64_t find_equal(const K* keys, K key, int64_t which) {
  const auto chosen = equal_to(key);
  for (int64_t i = 0;; i += kLanes<K>) {
    uint32_t bits = chosen(load(keys + i));
    const int count = __builtin_popcount(bits);
    if (which >= count) {
      which -= count;
      continue;
    }
    for (; which > 0; --which) bits &= bits - 1;
    return i + __builtin_ctz(bits);
  }
}

/** ranks[i] = the number of the n <= kFewKeys keys that are less than key i. Needs room for a vector more. */
template <class K>
void count_ranks(const K* keys, int64_t n, K* ranks) {
  constexpr int64_t kSize = kLanes<K>;
  int64_t i = 0;
  for (; i + kSize < n; i += 2 * kSize) {
    const Simd<K> a = load(keys + i), b = load(keys + i + kSize);
    Simd<K> less_a{}, less_b{};
    for (int64_t j = 0; j < n; ++j) {
      const Simd<K> key = broadcast(keys[j]);
      less_a = count_less<K>(less_a, key, a);
      less_b = count_less<K>(less_b, key, b);
    }
    store(ranks + i, less_a);
    store(ranks + i + kSize, less_b);
  }
  if (i >= n) return;
  const Simd<K> a = load(keys + i);
  Simd<K> less{};
  for (int64_t j = 0; j < n; ++j) less = count_less<K>(less, broadcast(keys[j]), a);
  store(ranks + i, less);
}

/** Calls visit(i, place) for each of few keys, with its position in a stable sort. */
template <class K, class Visit>
TERCEL_ALWAYS_INLINE void for_each_place(const K* keys, int64_t n, Visit visit) {
  alignas(64) K ranks[kFewKeys + 2 * kLanes<K>];
  uint8_t seen[kFewKeys] = {};
  count_ranks(keys, n, ranks);
  for (int64_t i = 0; i < n; ++i) visit(i, static_cast<int64_t>(ranks[i]) + seen[ranks[i]]++);
}

/** A key, and the number of smaller keys. */
template <class K>
struct KeyOfRank {
  K key;
  int64_t less;
};

template <class K>
KeyOfRank<K> key_of_rank_in_few(const K* keys, int64_t n, int64_t rank) {
  alignas(64) K ranks[kFewKeys + 2 * kLanes<K>];
  count_ranks(keys, n, ranks);
  KeyOfRank<K> best{keys[0], -1};
  for (int64_t i = 0; i < n; ++i)
    if (ranks[i] <= rank && ranks[i] > best.less) best = {keys[i], ranks[i]};
  return best;
}

template <class K>
void range_of_keys(const K* keys, int64_t n, K& least, K& most) {
  least = most = keys[0];
  for (int64_t i = 0; i < n; ++i) {
    least = keys[i] < least ? keys[i] : least;
    most = keys[i] > most ? keys[i] : most;
  }
}

/** Digit of a key above `shift`, of its distance from the smallest key; keys are counted by it. */
template <class K>
struct KeyDigit {
  using Bits = std::make_unsigned_t<K>;
  K least;
  int shift;

  TERCEL_ALWAYS_INLINE uint32_t operator()(K key) const {
    return static_cast<uint32_t>((static_cast<Bits>(key) - static_cast<Bits>(least)) >> shift);
  }
};

/** Copies the keys with this digit to kept; returns their number. May be in place; needs room for a vector more. */
template <class K>
int64_t keep_digit(const K* keys, int64_t n, KeyDigit<K> digit, uint32_t value, K* kept) {
  int64_t count = 0;
#if TERCEL_ISA_LEVEL == 2
  using U = typename KeyDigit<K>::Bits;
  const Simd<U> least = broadcast(static_cast<U>(digit.least)), wanted = broadcast(static_cast<U>(value));
  for (int64_t i = 0; i < n; i += kLanes<K>) {
    const Simd<K> key = load(keys + i);
    const Simd<U> digits = (reinterpret_cast<Simd<U>>(key) - least) >> digit.shift;
    const __m512i bits = reinterpret_cast<__m512i>(key), d = reinterpret_cast<__m512i>(digits);
    const __m512i w = reinterpret_cast<__m512i>(wanted);
    const uint32_t valid = n - i < kLanes<K> ? (uint32_t{1} << (n - i)) - 1 : ~uint32_t{0};
    if constexpr (sizeof(K) == 4) {
      const auto mask = static_cast<__mmask16>(_mm512_cmpeq_epi32_mask(d, w) & valid);
      _mm512_storeu_si512(kept + count, _mm512_maskz_compress_epi32(mask, bits));
      count += __builtin_popcount(mask);
    } else {
      const auto mask = static_cast<__mmask8>(_mm512_cmpeq_epi64_mask(d, w) & valid);
      _mm512_storeu_si512(kept + count, _mm512_maskz_compress_epi64(mask, bits));
      count += __builtin_popcount(mask);
    }
  }
#else
  for (int64_t i = 0; i < n; ++i) {
    const K key = keys[i];
    kept[count] = key;
    count += digit(key) == value;
  }
#endif
  return count;
}

/** Counts of digits, in four tables, so that an addition need not wait for the previous one if adjacent keys are alike.
 */
template <int kBits, class K>
void count_key_digits(const K* keys, int64_t n, KeyDigit<K> digit, uint32_t* counts) {
  uint32_t more[3][1 << kBits];
  __builtin_memset(counts, 0, sizeof(more[0]));
  __builtin_memset(more, 0, sizeof(more));
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    ++counts[digit(keys[i])];
    ++more[0][digit(keys[i + 1])];
    ++more[1][digit(keys[i + 2])];
    ++more[2][digit(keys[i + 3])];
  }
  for (; i < n; ++i) ++counts[digit(keys[i])];
  for (int b = 0; b < 1 << kBits; ++b) counts[b] += more[0][b] + more[1][b] + more[2][b];
}

constexpr int kManyKeyBits = 11, kKeyBits = 8;
/** Number of keys from which more bits are counted at a time. */
constexpr int64_t kManyKeys = 8192;

/** The key of rank `rank`, counted from 0, among n. `scratch` has room for n and a vector. */
template <class K>
KeyOfRank<K> key_of_rank(const K* keys, int64_t n, int64_t rank, K* scratch) {
  uint32_t counts[1 << kManyKeyBits];
  int64_t less = 0;
  while (n > kFewKeys) {
    K least, most;
    range_of_keys(keys, n, least, most);
    if (least == most) return {least, less};
    using U = typename KeyDigit<K>::Bits;
    const int bits = 64 - __builtin_clzll(static_cast<U>(static_cast<U>(most) - static_cast<U>(least)));
    const int digit_bits = n > kManyKeys ? kManyKeyBits : kKeyBits;
    const KeyDigit<K> digit{least, bits > digit_bits ? bits - digit_bits : 0};
    if (n > kManyKeys)
      count_key_digits<kManyKeyBits>(keys, n, digit, counts);
    else
      count_key_digits<kKeyBits>(keys, n, digit, counts);
    uint32_t value = 0;
    for (; rank >= counts[value]; ++value) {
      rank -= counts[value];
      less += counts[value];
    }
    if (digit.shift == 0) return {static_cast<K>(static_cast<U>(least) + value), less};
    n = keep_digit(keys, n, digit, value, scratch);
    keys = scratch;
  }
  const KeyOfRank<K> found = key_of_rank_in_few(keys, n, rank);
  return {found.key, less + found.less};
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
