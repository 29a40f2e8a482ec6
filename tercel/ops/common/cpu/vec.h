// Vectors of float and double for kernels: xsimd's registers, with selected functions.
//
// Vec<T> and Mask<T> behave like T and bool in a functor: operators, comparisons and the functions of vec_math.h are
// found by argument. A kernel file is compiled once per instruction set; TERCEL_ISA names the namespace.
#pragma once

#include <xsimd/xsimd.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tercel/ops/common/cpu/simd.h"

namespace tercel::TERCEL_ISA {
namespace {

#if TERCEL_ISA_LEVEL == 2
using Arch = xsimd::avx512bw;
#elif TERCEL_ISA_LEVEL == 1
using Arch = xsimd::fma3<xsimd::avx2>;
#else
using Arch = xsimd::sse2;
#endif

template <class T>
struct Mask {
  using Batch = xsimd::batch_bool<T, Arch>;
  Batch v;

  Mask(Batch batch) : v(batch) {}
  explicit Mask(bool value) : v(value) {}
  friend Mask operator&(Mask a, Mask b) { return a.v & b.v; }
  friend Mask operator|(Mask a, Mask b) { return a.v | b.v; }
  // Not xsimd's ^, which is "or" for AVX-512 masks (xsimd 8.1).
  friend Mask operator^(Mask a, Mask b) { return (a.v | b.v) & ~(a.v & b.v); }
  friend Mask operator!(Mask a) { return ~a.v; }
  friend bool any(Mask a) { return xsimd::any(a.v); }
};

template <class T>
struct Vec {
  using Batch = xsimd::batch<T, Arch>;
  static constexpr int64_t kSize = static_cast<int64_t>(Batch::size);
  Batch v;

  Vec() = default;
  Vec(Batch batch) : v(batch) {}
  explicit Vec(T value) : v(value) {}
  template <class U>
  requires(std::is_arithmetic_v<U> && !std::is_same_v<U, T>) explicit Vec(U value) : v(static_cast<T>(value)) {}

  static Vec load(const T* p) { return Batch::load_unaligned(p); }
  void store(T* p) const { v.store_unaligned(p); }

  friend Vec operator+(Vec a, Vec b) { return a.v + b.v; }
  friend Vec operator-(Vec a, Vec b) { return a.v - b.v; }
  friend Vec operator*(Vec a, Vec b) { return a.v * b.v; }
  friend Vec operator/(Vec a, Vec b) { return a.v / b.v; }
  // Flips the sign bit: 0 - x would lose the sign of zero.
  friend Vec operator-(Vec a) { return a.v ^ Batch(T(-0.0)); }
  friend Mask<T> operator==(Vec a, Vec b) { return a.v == b.v; }
  friend Mask<T> operator!=(Vec a, Vec b) { return !Mask<T>(a.v == b.v); }
  friend Mask<T> operator<(Vec a, Vec b) { return a.v < b.v; }
  friend Mask<T> operator<=(Vec a, Vec b) { return a.v <= b.v; }
  friend Mask<T> operator>(Vec a, Vec b) { return b.v < a.v; }
  friend Mask<T> operator>=(Vec a, Vec b) { return b.v <= a.v; }

  friend Vec where(Mask<T> condition, Vec a, Vec b) { return xsimd::select(condition.v, a.v, b.v); }
  friend Vec abs(Vec a) { return a.v & all_but_sign(); }
  friend Vec sqrt(Vec a) { return xsimd::sqrt(a.v); }
  /** Magnitude of a, sign of b. */
  friend Vec copysign(Vec a, Vec b) { return (a.v & all_but_sign()) | (b.v & Batch(T(-0.0))); }

 private:
  // Not xsimd's andnot, whose operands were swapped between versions.
  static Batch all_but_sign() {
    if constexpr (sizeof(T) == 4)
      return Batch(__builtin_bit_cast(float, 0x7fffffff));
    else
      return Batch(__builtin_bit_cast(double, 0x7fffffffffffffff));
  }
};

/** a * b + c, rounded once where the instruction set can (xsimd's fma rounds twice with AVX-512). */
template <class T>
Vec<T> multiply_add(Vec<T> a, Vec<T> b, Vec<T> c) {
  return typename Vec<T>::Batch(TERCEL_ISA::multiply_add(Simd<T>(a.v.data), Simd<T>(b.v.data), Simd<T>(c.v.data)));
}

// The last n < kSize elements of an array; the other lanes are zero. An element's result must not depend on its
// position, so partial vectors use the same instructions as full ones.
#if TERCEL_ISA_LEVEL == 2
inline Vec<float> load_partial(const float* p, int64_t n) {
  return Vec<float>::Batch(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1u), p));
}
inline Vec<double> load_partial(const double* p, int64_t n) {
  return Vec<double>::Batch(_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1u), p));
}
inline void store_partial(float* p, Vec<float> x, int64_t n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1u), x.v);
}
inline void store_partial(double* p, Vec<double> x, int64_t n) {
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1u), x.v);
}
#elif TERCEL_ISA_LEVEL == 1
alignas(64) constexpr int32_t kTailMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
inline __m256i tail_mask(const float*, int64_t n) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kTailMask + 8 - n));
}
inline __m256i tail_mask(const double*, int64_t n) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kTailMask + 8 - 2 * n));
}
inline Vec<float> load_partial(const float* p, int64_t n) {
  return Vec<float>::Batch(_mm256_maskload_ps(p, tail_mask(p, n)));
}
inline Vec<double> load_partial(const double* p, int64_t n) {
  return Vec<double>::Batch(_mm256_maskload_pd(p, tail_mask(p, n)));
}
inline void store_partial(float* p, Vec<float> x, int64_t n) { _mm256_maskstore_ps(p, tail_mask(p, n), x.v); }
inline void store_partial(double* p, Vec<double> x, int64_t n) { _mm256_maskstore_pd(p, tail_mask(p, n), x.v); }
#else
template <class T>
Vec<T> load_partial(const T* p, int64_t n) {
  alignas(16) T lanes[Vec<T>::kSize] = {};
  std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof(T));
  return Vec<T>::load(lanes);
}
template <class T>
void store_partial(T* p, Vec<T> x, int64_t n) {
  alignas(16) T lanes[Vec<T>::kSize];
  x.store(lanes);
  std::memcpy(p, lanes, static_cast<size_t>(n) * sizeof(T));
}
#endif

/** load_partial, with `fill` in the other lanes. */
#if TERCEL_ISA_LEVEL == 2
inline Vec<float> load_partial(const float* p, int64_t n, Vec<float> fill) {
  return Vec<float>::Batch(_mm512_mask_loadu_ps(fill.v, static_cast<__mmask16>((1u << n) - 1u), p));
}
inline Vec<double> load_partial(const double* p, int64_t n, Vec<double> fill) {
  return Vec<double>::Batch(_mm512_mask_loadu_pd(fill.v, static_cast<__mmask8>((1u << n) - 1u), p));
}
#elif TERCEL_ISA_LEVEL == 1
inline Vec<float> load_partial(const float* p, int64_t n, Vec<float> fill) {
  return Vec<float>::Batch(_mm256_blendv_ps(fill.v, load_partial(p, n).v, _mm256_castsi256_ps(tail_mask(p, n))));
}
inline Vec<double> load_partial(const double* p, int64_t n, Vec<double> fill) {
  return Vec<double>::Batch(_mm256_blendv_pd(fill.v, load_partial(p, n).v, _mm256_castsi256_pd(tail_mask(p, n))));
}
#else
template <class T>
Vec<T> load_partial(const T* p, int64_t n, Vec<T> fill) {
  alignas(16) T lanes[Vec<T>::kSize];
  fill.store(lanes);
  std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof(T));
  return Vec<T>::load(lanes);
}
#endif

}  // namespace
}  // namespace tercel::TERCEL_ISA
