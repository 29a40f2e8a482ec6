// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC11).
//
// The n-th block of a stream is a pure function of (seed, stream, n), so numbers do not depend on how many threads
// draw them or in which order.
#pragma once

#include <cmath>
#include <cstdint>

#include "tercel/util/macros.h"

namespace tercel {

/** Four 32-bit words: a counter, or one block of random bits. */
struct PhiloxBlock {
  uint32_t word[4];
};

namespace detail {

TERCEL_HD constexpr uint64_t multiply_high(uint64_t a, uint64_t b) {
  const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
  return a1 * b1 + (middle >> 32) + ((a0 * b1 + (middle & 0xffffffffu)) >> 32);
}

}  // namespace detail

/** Ten rounds over `counter` under the two words of `key` (low word first). */
TERCEL_HD constexpr PhiloxBlock philox4x32(PhiloxBlock counter, uint64_t key) {
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2], c3 = counter.word[3];
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<uint32_t>(product0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/** 2^64 independent streams per seed, each of 2^64 blocks with random access. */
struct Philox {
  uint64_t seed = 0;
  uint64_t stream = 0;

  /** Block `index` of the stream. */
  TERCEL_HD constexpr PhiloxBlock operator()(uint64_t index) const {
    return philox4x32({{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(stream),
                        static_cast<uint32_t>(stream >> 32)}},
                      seed);
  }
};

/** 64 bits out of two words. */
TERCEL_HD constexpr uint64_t random_u64(uint32_t low, uint32_t high) {
  return (static_cast<uint64_t>(high) << 32) | low;
}

/** Uniform in [0, 1), a multiple of 2^-24. */
TERCEL_HD constexpr float uniform_f32(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

/** Uniform in [0, 1), a multiple of 2^-53. */
TERCEL_HD constexpr double uniform_f64(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/** Uniform in [0, count), count > 0; no value is off by more than count / 2^64 relative. */
TERCEL_HD constexpr uint64_t uniform_int(uint64_t bits, uint64_t count) { return detail::multiply_high(bits, count); }

struct NormalPairF32 {
  float first, second;
};
struct NormalPairF64 {
  double first, second;
};

/** Two independent standard normals (Box-Muller); |x| <= 5.77, as the smallest uniform is 2^-24. */
TERCEL_HD inline NormalPairF32 normal_f32(uint32_t bits0, uint32_t bits1) {
  const float radius = std::sqrt(-2.0f * std::log(static_cast<float>((bits0 >> 8) + 1) * 0x1p-24f));
  const float angle = 6.283185307f * uniform_f32(bits1);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/** Two independent standard normals (Box-Muller); |x| <= 8.58. */
TERCEL_HD inline NormalPairF64 normal_f64(uint64_t bits0, uint64_t bits1) {
  const double radius = std::sqrt(-2.0 * std::log(static_cast<double>((bits0 >> 11) + 1) * 0x1p-53));
  const double angle = 6.283185307179586477 * uniform_f64(bits1);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace tercel
