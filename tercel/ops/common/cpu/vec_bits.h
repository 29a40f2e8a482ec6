// Bits, exponents and table lookups of Vec<T> with AVX2 and AVX-512, which give the same values with both.
#pragma once

#include <limits>

#include "tercel/ops/common/cpu/vec.h"

#if TERCEL_ISA_LEVEL >= 1
namespace tercel::TERCEL_ISA {
namespace {

#if TERCEL_ISA_LEVEL == 2
using Bits = __m512i;
inline Bits bits_of(Vec<float> x) { return _mm512_castps_si512(x.v); }
inline Bits bits_of(Vec<double> x) { return _mm512_castpd_si512(x.v); }
// Of two numbers, the second where one is NaN.
inline Vec<float> lesser(float a, Vec<float> b) { return Vec<float>::Batch(_mm512_min_ps(_mm512_set1_ps(a), b.v)); }
inline Vec<double> lesser(double a, Vec<double> b) { return Vec<double>::Batch(_mm512_min_pd(_mm512_set1_pd(a), b.v)); }
inline Vec<float> greater(float a, Vec<float> b) { return Vec<float>::Batch(_mm512_max_ps(_mm512_set1_ps(a), b.v)); }
inline Vec<double> greater(double a, Vec<double> b) {
  return Vec<double>::Batch(_mm512_max_pd(_mm512_set1_pd(a), b.v));
}
/** The nearest whole number, of two the even one. */
inline Vec<float> nearest(Vec<float> x) {
  return Vec<float>::Batch(_mm512_roundscale_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline Vec<double> nearest(Vec<double> x) {
  return Vec<double>::Batch(_mm512_roundscale_pd(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/** p 2^n for a whole n, rounded once, where p is NaN or of a size from 1/32 to 2, or n is 0. */
inline Vec<float> scale(Vec<float> p, Vec<float> n) { return Vec<float>::Batch(_mm512_scalef_ps(p.v, n.v)); }
inline Vec<double> scale(Vec<double> p, Vec<double> n) { return Vec<double>::Batch(_mm512_scalef_pd(p.v, n.v)); }
/** 2^-n, 0 for large n. */
inline Vec<float> inverse_power(Vec<float> n) { return scale(Vec<float>(1), -n); }
/** The exponent and the first bit of the mantissa in the lowest bits. */
inline Bits top_bits(Vec<float> x) { return _mm512_srli_epi32(bits_of(x), 22); }
inline Bits top_bits(Vec<double> x) { return _mm512_srli_epi64(bits_of(x), 51); }
/** x with its sign flipped where the lowest bit is set. */
inline Vec<float> flip_if_odd(Vec<float> x, Bits bits) {
  return Vec<float>::Batch(_mm512_castsi512_ps(_mm512_xor_si512(bits_of(x), _mm512_slli_epi32(bits, 31))));
}
inline Vec<double> flip_if_odd(Vec<double> x, Bits bits) {
  return Vec<double>::Batch(_mm512_castsi512_pd(_mm512_xor_si512(bits_of(x), _mm512_slli_epi64(bits, 63))));
}
/** Where the lowest bit is set in lanes of float. */
inline Mask<float> is_odd(Bits bits) { return Mask<float>::Batch(_mm512_test_epi32_mask(bits, _mm512_set1_epi32(1))); }
#else
using Bits = __m256i;
inline Bits bits_of(Vec<float> x) { return _mm256_castps_si256(x.v); }
inline Bits bits_of(Vec<double> x) { return _mm256_castpd_si256(x.v); }
inline Vec<float> float_of(Bits bits) { return Vec<float>::Batch(_mm256_castsi256_ps(bits)); }
inline Vec<double> double_of(Bits bits) { return Vec<double>::Batch(_mm256_castsi256_pd(bits)); }
inline Vec<float> lesser(float a, Vec<float> b) { return Vec<float>::Batch(_mm256_min_ps(_mm256_set1_ps(a), b.v)); }
inline Vec<double> lesser(double a, Vec<double> b) { return Vec<double>::Batch(_mm256_min_pd(_mm256_set1_pd(a), b.v)); }
inline Vec<float> greater(float a, Vec<float> b) { return Vec<float>::Batch(_mm256_max_ps(_mm256_set1_ps(a), b.v)); }
inline Vec<double> greater(double a, Vec<double> b) {
  return Vec<double>::Batch(_mm256_max_pd(_mm256_set1_pd(a), b.v));
}
inline Vec<float> nearest(Vec<float> x) {
  return Vec<float>::Batch(_mm256_round_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline Vec<double> nearest(Vec<double> x) {
  return Vec<double>::Batch(_mm256_round_pd(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
// By an addition to the exponent where the result is a normal number, else by two factors, only the second of which
// rounds. A size of n beyond the limits of int32 is NaN.
inline Vec<float> scale(Vec<float> p, Vec<float> n) {
  const Bits whole = _mm256_cvtps_epi32(n.v);
  if (!any(!(abs(n) <= Vec<float>(120)))) return float_of(_mm256_add_epi32(bits_of(p), _mm256_slli_epi32(whole, 23)));
  const Bits half = _mm256_srai_epi32(whole, 1), one = _mm256_set1_epi32(0x3f800000);
  const auto power = [&](Bits k) { return float_of(_mm256_add_epi32(_mm256_slli_epi32(k, 23), one)); };
  return p * power(half) * power(_mm256_sub_epi32(whole, half));
}
inline Vec<double> scale(Vec<double> p, Vec<double> n) {
  // 1.5 times 2^52: the sum's last bits are those of n. A half of n is rounded down as an integer would be.
  const Vec<double> shift(6755399441055744.0), one(1);
  const auto exponent = [&](Vec<double> k) { return _mm256_slli_epi64(bits_of(k + shift), 52); };
  if (!any(!(abs(n) <= Vec<double>(1000)))) return double_of(_mm256_add_epi64(bits_of(p), exponent(n)));
  const Vec<double> half = nearest(n * Vec<double>(0.5));
  const auto power = [&](Vec<double> k) { return double_of(_mm256_add_epi64(bits_of(one), exponent(k))); };
  return p * power(half) * power(n - half);
}
inline Vec<float> inverse_power(Vec<float> n) {
  const Bits exponent = _mm256_sub_epi32(_mm256_set1_epi32(127), _mm256_cvtps_epi32(n.v));
  return float_of(_mm256_slli_epi32(_mm256_max_epi32(exponent, _mm256_setzero_si256()), 23));
}
inline Bits top_bits(Vec<float> x) { return _mm256_srli_epi32(bits_of(x), 22); }
inline Bits top_bits(Vec<double> x) { return _mm256_srli_epi64(bits_of(x), 51); }
inline Vec<float> flip_if_odd(Vec<float> x, Bits bits) {
  return float_of(_mm256_xor_si256(bits_of(x), _mm256_slli_epi32(bits, 31)));
}
inline Vec<double> flip_if_odd(Vec<double> x, Bits bits) {
  return double_of(_mm256_xor_si256(bits_of(x), _mm256_slli_epi64(bits, 63)));
}
inline Mask<float> is_odd(Bits bits) {
  return Mask<float>::Batch(_mm256_castsi256_ps(_mm256_srai_epi32(_mm256_slli_epi32(bits, 31), 31)));
}
#endif

/** x = 2^e (1 + z) with z from -1/4 to 1/2; infinite and NaN ones, zeros and numbers below show in e or z. */
template <class T>
struct Parts {
  Vec<T> e, z;
  explicit Parts(Vec<T> x) {
    const Vec<T> one(1);
#if TERCEL_ISA_LEVEL == 2
    if constexpr (sizeof(T) == 4) {
      z = typename Vec<T>::Batch(_mm512_getmant_ps(x.v, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan));
      e = typename Vec<T>::Batch(_mm512_getexp_ps(x.v));
    } else {
      z = typename Vec<T>::Batch(_mm512_getmant_pd(x.v, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan));
      e = typename Vec<T>::Batch(_mm512_getexp_pd(x.v));
    }
    e = where(z < one, e + one, e);
    z = z - one;
#else
    constexpr T kLeast = std::numeric_limits<T>::min(), kInfinity = std::numeric_limits<T>::infinity();
    // Subnormal numbers get an exponent first.
    constexpr T kLift = sizeof(T) == 4 ? T(33554432) : T(18014398509481984);  // 2^25, 2^54
    constexpr T kLifted = sizeof(T) == 4 ? 25 : 54;
    const Mask<T> ordinary = (x >= Vec<T>(kLeast)) & (x < Vec<T>(kInfinity));
    if (any(!ordinary)) {
      const Mask<T> small = x < Vec<T>(kLeast);
      split(where(small, x * Vec<T>(kLift), x));
      e = where(small, e - Vec<T>(kLifted), e);
      e = where(x == Vec<T>(0), Vec<T>(-kInfinity), where(x == Vec<T>(kInfinity), x, e));
      z = where(x > Vec<T>(0), where(x == Vec<T>(kInfinity), Vec<T>(0), z),
                where(x == Vec<T>(0), Vec<T>(0), Vec<T>(std::numeric_limits<T>::quiet_NaN())));
      return;
    }
    split(x);
#endif
  }
#if TERCEL_ISA_LEVEL == 1
 private:
  /** Of normal numbers: the bits above those of 3/4 are the exponent's. */
  void split(Vec<T> x) {
    if constexpr (sizeof(T) == 4) {
      const Bits exponent = _mm256_srai_epi32(_mm256_sub_epi32(bits_of(x), _mm256_set1_epi32(0x3f400000)), 23);
      e = Vec<T>(typename Vec<T>::Batch(_mm256_cvtepi32_ps(exponent)));
      z = float_of(_mm256_sub_epi32(bits_of(x), _mm256_slli_epi32(exponent, 23))) - Vec<T>(1);
    } else {
      // Biased by 1024, as AVX2 has neither an arithmetic shift nor a conversion of int64. 2^52 + k has k as its bits.
      const Bits bias = _mm256_set1_epi64x(0x4000000000000000 - 0x3fe8000000000000);
      const Bits exponent = _mm256_srli_epi64(_mm256_add_epi64(bits_of(x), bias), 52);
      const Vec<T> shift(4503599627370496.0);
      e = double_of(_mm256_or_si256(exponent, bits_of(shift))) - Vec<T>(4503599627370496.0 + 1024);
      const Bits power = _mm256_slli_epi64(_mm256_sub_epi64(exponent, _mm256_set1_epi64x(1024)), 52);
      z = double_of(_mm256_sub_epi64(bits_of(x), power)) - Vec<T>(1);
    }
  }
#endif
};

// Note [Lookups in 16 intervals]
// With AVX-512 a row of 16 numbers is looked up by one permutation, of two registers in float64. With AVX2 a row of
// float32 takes two permutations and a choice between them; a row of float64 would take seven, so that each lane
// loads the numbers of its interval from a transposed table, four at a time, and transposes them.
#if TERCEL_ISA_LEVEL == 2
inline Vec<float> look_up(const float (&row)[16], Bits i) {
  return Vec<float>::Batch(_mm512_permutexvar_ps(i, _mm512_load_ps(row)));
}
inline Vec<double> look_up(const double (&row)[16], Bits i) {
  return Vec<double>::Batch(_mm512_permutex2var_pd(_mm512_load_pd(row), i, _mm512_load_pd(row + 8)));
}
#else
inline Vec<float> look_up(const float (&row)[16], Bits i) {
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_load_ps(row), i),
               high = _mm256_permutevar8x32_ps(_mm256_load_ps(row + 8), i);
  return Vec<float>::Batch(_mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(i, 28))));
}
#endif

// Tables of 8 intervals need but one permutation.
inline Vec<float> look_up(const float (&row)[8], Bits i) {
#if TERCEL_ISA_LEVEL == 2
  return Vec<float>::Batch(_mm512_permutexvar_ps(i, _mm512_broadcast_f32x8(_mm256_load_ps(row))));
#else
  return Vec<float>::Batch(_mm256_permutevar8x32_ps(_mm256_load_ps(row), i));
#endif
}

/** The rows of a table, looked up by the low four (three) bits of the lanes of an index. */
template <class T, const auto& kTable>
struct Rows {
  static constexpr size_t kRows = sizeof(kTable) / sizeof(kTable[0]);
  Bits i;
  explicit Rows(Bits index) : i(index) {}
  Vec<T> operator[](size_t row) const { return look_up(kTable[row], i); }
};
#if TERCEL_ISA_LEVEL == 1
template <const auto& kTable>
struct Transposed {
  static constexpr size_t kRows = sizeof(kTable) / sizeof(kTable[0]), kGroups = (kRows + 3) / 4;
  double column[16][4 * kGroups] = {};
  constexpr Transposed() {
    for (size_t row = 0; row < kRows; ++row)
      for (size_t i = 0; i < 16; ++i) column[i][row] = kTable[row][i];
  }
};
template <const auto& kTable>
alignas(64) constexpr Transposed<kTable> kTransposed;

template <const auto& kTable>
struct Rows<double, kTable> {
  static constexpr size_t kRows = Transposed<kTable>::kRows;
  Vec<double> row[4 * Transposed<kTable>::kGroups];

  explicit Rows(Bits index) {
    const Bits i = _mm256_and_si256(index, _mm256_set1_epi64x(15));
    const double* const column[] = {
        kTransposed<kTable>.column[_mm256_extract_epi64(i, 0)], kTransposed<kTable>.column[_mm256_extract_epi64(i, 1)],
        kTransposed<kTable>.column[_mm256_extract_epi64(i, 2)], kTransposed<kTable>.column[_mm256_extract_epi64(i, 3)]};
    const auto pair = [&](size_t lane, size_t k) {
      return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_load_pd(column[lane] + k)),
                                  _mm_load_pd(column[lane + 2] + k), 1);
    };
    for (size_t k = 0; k < 4 * Transposed<kTable>::kGroups; k += 2) {
      const __m256d even = pair(0, k), odd = pair(1, k);
      row[k] = Vec<double>::Batch(_mm256_unpacklo_pd(even, odd));
      row[k + 1] = Vec<double>::Batch(_mm256_unpackhi_pd(even, odd));
    }
  }
  Vec<double> operator[](size_t k) const { return row[k]; }
};
#endif

/** The polynomial whose coefficients are the rows from this one on, constant term first. */
template <class T, const auto& kTable>
Vec<T> polynomial(const Rows<T, kTable>& rows, size_t first, Vec<T> x) {
  Vec<T> sum = rows[Rows<T, kTable>::kRows - 1];
  for (size_t k = Rows<T, kTable>::kRows - 1; k-- > first;) sum = multiply_add(sum, x, rows[k]);
  return sum;
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
#endif
