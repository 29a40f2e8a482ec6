// Random bits, uniform and normal numbers, as loops over small arrays for the compiler to vectorise.
//
//   log(2^e m):  e log 2 + 2 artanh(s),  s = (m - 1) / (m + 1),  sqrt(1/2) <= m < sqrt(2),  as a power series
//   cos, sin(2 pi t):  quarter turns q = round(4 t), then power series at 2 pi (t - q / 4), at most pi / 4
#include "tercel/ops/random/random_kernels.h"

#include <cmath>
#include <cstring>

#include "tercel/ops/common/cpu/philox_lanes.h"
#include "tercel/util/macros.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int kLanesOfBlocks = static_cast<int>(kRandomLanes);
// Pairs of normal numbers computed together.
constexpr int kPairs = static_cast<int>(kNormalsTogether) / 2;

template <class To, class From>
TERCEL_ALWAYS_INLINE To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

/** c[0] + x c[1] + ... */
template <class T, size_t N>
TERCEL_ALWAYS_INLINE T power_series(T x, const T (&c)[N]) {
  T sum = c[N - 1];
  for (size_t i = N - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// 1 / (2 i + 1); (-1)^i / (2 i + 1)!; (-1)^i / (2 i)!.
constexpr float kArtanhF32[] = {1, 1.0F / 3, 1.0F / 5, 1.0F / 7, 1.0F / 9};
constexpr float kSinF32[] = {1, -1.0F / 6, 1.0F / 120, -1.0F / 5040, 1.0F / 362880};
constexpr float kCosF32[] = {1, -1.0F / 2, 1.0F / 24, -1.0F / 720, 1.0F / 40320};
constexpr double kArtanhF64[] = {1,        1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                                 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
constexpr double kSinF64[] = {1,
                              -1.0 / 6,
                              1.0 / 120,
                              -1.0 / 5040,
                              1.0 / 362880,
                              -1.0 / 39916800,
                              1.0 / 6227020800,
                              -1.0 / 1307674368000,
                              1.0 / 355687428096000};
constexpr double kCosF64[] = {1,
                              -1.0 / 2,
                              1.0 / 24,
                              -1.0 / 720,
                              1.0 / 40320,
                              -1.0 / 3628800,
                              1.0 / 479001600,
                              -1.0 / 87178291200,
                              1.0 / 20922789888000};

TERCEL_ALWAYS_INLINE float log_of(float x) {
  constexpr int32_t kRootHalf = 0x3f3504f3;  // the bits of sqrt(1/2)
  const auto bits = same_bits<int32_t>(x);
  const int32_t exponent = (bits - kRootHalf) >> 23;
  const auto m = same_bits<float>(bits - exponent * (1 << 23));
  const float s = (m - 1) / (m + 1);
  return static_cast<float>(exponent) * 0.693147181F + 2 * s * power_series(s * s, kArtanhF32);
}

TERCEL_ALWAYS_INLINE double log_of(double x) {
  constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;
  const auto bits = same_bits<int64_t>(x);
  // In 32 bits, since every instruction set has 32-bit conversions and shifts.
  const auto exponent = static_cast<int32_t>(static_cast<uint64_t>(bits - kRootHalf + (int64_t{1} << 62)) >> 52) - 1024;
  const auto m = same_bits<double>(bits - static_cast<int64_t>(exponent) * (int64_t{1} << 52));
  const double s = (m - 1) / (m + 1);
  return static_cast<double>(exponent) * 0.693147180559945309 + 2 * s * power_series(s * s, kArtanhF64);
}

/** cos and sin of 2 pi times q / 4 + x. */
template <class T, size_t N>
TERCEL_ALWAYS_INLINE void cos_and_sin(int32_t q, T x, const T (&cosine)[N], const T (&sine)[N], T& c, T& s) {
  const T y = x * T(6.283185307179586477);
  const T cos_y = power_series(y * y, cosine), sin_y = y * power_series(y * y, sine);
  const T even = q & 1 ? sin_y : cos_y, odd = q & 1 ? cos_y : sin_y;
  c = (q + 1) & 2 ? -even : even;
  s = q & 2 ? -odd : odd;
}

/** The upper 53 bits of two words, as an integer. */
TERCEL_ALWAYS_INLINE double high_bits(uint32_t low, uint32_t high) {
  // Every instruction set has signed conversions.
  const double upper = static_cast<double>(static_cast<int32_t>(high ^ 0x80000000U)) + 0x1p31;
  return upper * 0x1p21 + static_cast<double>(static_cast<int32_t>(low >> 11));
}

}  // namespace

void random_words(uint64_t seed, uint64_t stream, uint64_t first, int64_t blocks, uint32_t* words) {
  for (int64_t b = 0; b < blocks; b += kRandomLanes) {
    uint32_t lanes[4][kLanesOfBlocks];
    philox_lanes<kLanesOfBlocks>(seed, stream, first + static_cast<uint64_t>(b), lanes);
    uint32_t* out = words + 4 * b;
    for (int i = 0; i < kLanesOfBlocks; ++i) {
      out[4 * i] = lanes[0][i];
      out[4 * i + 1] = lanes[1][i];
      out[4 * i + 2] = lanes[2][i];
      out[4 * i + 3] = lanes[3][i];
    }
  }
}

void uniform_numbers_f32(const uint32_t* words, int64_t count, float low, float span, float high, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = low + span * (static_cast<float>(static_cast<int32_t>(words[i] >> 8)) * 0x1p-24F);
    out[i] = value < high ? value : low;
  }
}

void uniform_numbers_f64(const uint32_t* words, int64_t count, double low, double span, double high, double* out) {
  for (int64_t i = 0; i < count; ++i) {
    const double value = low + span * (high_bits(words[2 * i], words[2 * i + 1]) * 0x1p-53);
    out[i] = value < high ? value : low;
  }
}

void normal_numbers_f32(const uint32_t* words, int64_t count, float* out) {
  for (int64_t first = 0; first < count; first += 2 * kPairs, words += 2 * kPairs, out += 2 * kPairs) {
    uint32_t of_radius[kPairs], of_angle[kPairs];
    float c[kPairs], s[kPairs];
    for (int i = 0; i < kPairs; ++i) {
      of_radius[i] = words[2 * i] >> 8;
      of_angle[i] = words[2 * i + 1] >> 8;
    }
    for (int i = 0; i < kPairs; ++i) {
      const float u = static_cast<float>(static_cast<int32_t>(of_radius[i] + 1)) * 0x1p-24F;
      const float radius = std::sqrt(-2 * log_of(u));
      const auto turn = static_cast<int32_t>(of_angle[i]);
      const int32_t q = (turn + (1 << 21)) >> 22;
      float cosine, sine;
      cos_and_sin(q, static_cast<float>(turn - q * (1 << 22)) * 0x1p-24F, kCosF32, kSinF32, cosine, sine);
      c[i] = radius * cosine;
      s[i] = radius * sine;
    }
    for (int i = 0; i < kPairs; ++i) {
      out[2 * i] = c[i];
      out[2 * i + 1] = s[i];
    }
  }
}

void normal_numbers_f64(const uint32_t* words, int64_t count, double* out) {
  for (int64_t first = 0; first < count; first += 2 * kPairs, words += 4 * kPairs, out += 2 * kPairs) {
    double of_radius[kPairs], of_angle[kPairs], c[kPairs], s[kPairs];
    for (int i = 0; i < kPairs; ++i) {
      of_radius[i] = high_bits(words[4 * i], words[4 * i + 1]) + 1;
      of_angle[i] = high_bits(words[4 * i + 2], words[4 * i + 3]) * 0x1p-53;
    }
    for (int i = 0; i < kPairs; ++i) {
      const double radius = std::sqrt(-2 * log_of(of_radius[i] * 0x1p-53));
      const int32_t q = (static_cast<int32_t>(of_angle[i] * 8) + 1) >> 1;
      double cosine, sine;
      cos_and_sin(q, of_angle[i] - static_cast<double>(q) * 0.25, kCosF64, kSinF64, cosine, sine);
      c[i] = radius * cosine;
      s[i] = radius * sine;
    }
    for (int i = 0; i < kPairs; ++i) {
      out[2 * i] = c[i];
      out[2 * i + 1] = s[i];
    }
  }
}

void random_log(int64_t count, double* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = log_of(values[i]);
}

}  // namespace tercel::TERCEL_ISA
