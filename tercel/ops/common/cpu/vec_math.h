// Mathematical functions of Vec<T>, each from an accurate library.
//
// Note [Choice of mathematics]
// Debian's xsimd 8.1 and SLEEF 3.5 were compared with long double over dense samples and special values;
// tests/ops/common/vec_math_test.cpp checks the bounds below. The faster one is used if both are accurate.
//
// With AVX2 and AVX-512 these are our own (Note [Own mathematics]), the same bits with both; with SSE2, which has no
// fused multiply-add, xsimd's or SLEEF's. Nanoseconds for an element on a core of an Intel Xeon with AVX-512 (family 6,
// model 167), before with AVX2 (xsimd, SLEEF), own with AVX2, own with AVX-512:
//
//            f32                     f64
//   exp      0.43  0.32  0.16        1.20  0.96  0.47    1 ulp
//   log      0.58  0.32  0.19        2.51  2.04  0.72    0.8 ulp; xsimd is wrong for subnormal f64
//   sin      0.72  0.31  0.23        1.59  0.80  0.52    2 ulp, for ordinary angles, as cos; else xsimd, 1.8 ulp
//   tanh     0.93  0.80  0.25        4.13  2.94  1.08    1 ulp
//   erf      1.03  0.76  0.25        9.22  2.51  1.05    1.3 ulp; xsimd 2.4 ulp in f32, SLEEF in f64
//   expm1    1.55  0.51  0.26                            1.4 ulp; SLEEF in f64, as xsimd is infinite too early
//
// Of the tables of tanh and erf, a row of f32 takes two permutations with AVX2, of f64 loads (Note [Lookups in 16
// intervals]): a little slower per lane than with AVX-512, and still faster than the libraries.
//
// - log1p: xsimd: SLEEF is infinite from 1e38 (f32) and 2.7e307 (f64) on; the sign of zero is put back
// - pow, atan2, hypot: SLEEF: xsimd's are compositions of the above
// - floor ...: SLEEF on SSE2, where xsimd loses the sign of zero; one instruction elsewhere
// - fmod: own, exact; by the C library, lane by lane, with SSE2 and for quotients of 2^23 (2^52) and more
#pragma once

#include <sleef.h>

#include <limits>

#include "tercel/ops/common/cpu/vec.h"
#include "tercel/ops/common/cpu/vec_functions.h"

#if TERCEL_ISA_LEVEL == 2
#define TERCEL_SLEEF_F32(name, ulp) Sleef_##name##f16_##ulp##avx512f
#define TERCEL_SLEEF_F64(name, ulp) Sleef_##name##d8_##ulp##avx512f
#elif TERCEL_ISA_LEVEL == 1
#define TERCEL_SLEEF_F32(name, ulp) Sleef_##name##f8_##ulp##avx2
#define TERCEL_SLEEF_F64(name, ulp) Sleef_##name##d4_##ulp##avx2
#else
#define TERCEL_SLEEF_F32(name, ulp) Sleef_##name##f4_##ulp##sse2
#define TERCEL_SLEEF_F64(name, ulp) Sleef_##name##d2_##ulp##sse2
#endif

namespace tercel::TERCEL_ISA {
namespace {

using VecF = Vec<float>;
using VecD = Vec<double>;

#if TERCEL_ISA_LEVEL >= 1
inline VecF exp(VecF x) { return exp_of(x); }
inline VecD exp(VecD x) { return exp_of(x); }
inline VecF expm1(VecF x) { return expm1_of(x); }
inline VecF log(VecF x) { return log_of(x); }
inline VecD log(VecD x) { return log_of(x); }
#else
inline VecF exp(VecF x) { return VecF::Batch(TERCEL_SLEEF_F32(exp, u10)(x.v)); }
inline VecD exp(VecD x) { return VecD::Batch(TERCEL_SLEEF_F64(exp, u10)(x.v)); }
inline VecF expm1(VecF x) { return VecF::Batch(TERCEL_SLEEF_F32(expm1, u10)(x.v)); }
inline VecF log(VecF x) { return xsimd::log(x.v); }
inline VecD log(VecD x) { return VecD::Batch(TERCEL_SLEEF_F64(log, u10)(x.v)); }
#endif
inline VecD expm1(VecD x) { return VecD::Batch(TERCEL_SLEEF_F64(expm1, u10)(x.v)); }
template <class T>
Vec<T> log1p(Vec<T> x) {
  return where(x == Vec<T>(0), x, Vec<T>(xsimd::log1p(x.v)));
}
// Large angles have separate code, which is long and rarely used.
template <class T>
[[gnu::noinline]] Vec<T> sin_of_any(Vec<T> x) {
  return xsimd::sin(x.v);
}
template <class T>
[[gnu::noinline]] Vec<T> cos_of_any(Vec<T> x) {
  return xsimd::cos(x.v);
}
template <class T>
Vec<T> sin(Vec<T> x) {
#if TERCEL_ISA_LEVEL >= 1
  const Mask<T> plain = is_plain_angle(x);
  const Vec<T> sine = sine_of<false>(x);
  return any(!plain) ? where(plain, sine, sin_of_any(x)) : sine;
#else
  return sin_of_any(x);
#endif
}
template <class T>
Vec<T> cos(Vec<T> x) {
#if TERCEL_ISA_LEVEL >= 1
  const Mask<T> plain = is_plain_angle(x);
  const Vec<T> cosine = sine_of<true>(x);
  return any(!plain) ? where(plain, cosine, cos_of_any(x)) : cosine;
#else
  return cos_of_any(x);
#endif
}
#if TERCEL_ISA_LEVEL >= 1
inline VecF tanh(VecF x) { return tanh_of(x); }
inline VecD tanh(VecD x) { return tanh_of(x); }
inline VecF erf(VecF x) { return erf_of(x); }
inline VecD erf(VecD x) { return erf_of(x); }
#else
template <class T>
Vec<T> tanh(Vec<T> x) {
  // The result is 1 from 20 on. Casting large numbers and NaN to integers would be undefined.
  const Vec<T> limit(20), one(1);
  const Vec<T> small = where(abs(x) < limit, x, Vec<T>(0));
  const Vec<T> rest = where(x >= limit, one, where(x <= -limit, -one, x));
  return where(abs(x) < limit, Vec<T>(xsimd::tanh(small.v)), rest);
}
inline VecF erf(VecF x) { return xsimd::erf(x.v); }
inline VecD erf(VecD x) { return VecD::Batch(TERCEL_SLEEF_F64(erf, u10)(x.v)); }
#endif
inline VecF pow(VecF x, VecF y) { return VecF::Batch(TERCEL_SLEEF_F32(pow, u10)(x.v, y.v)); }
inline VecD pow(VecD x, VecD y) { return VecD::Batch(TERCEL_SLEEF_F64(pow, u10)(x.v, y.v)); }
inline VecF atan2(VecF y, VecF x) { return VecF::Batch(TERCEL_SLEEF_F32(atan2, u10)(y.v, x.v)); }
inline VecD atan2(VecD y, VecD x) { return VecD::Batch(TERCEL_SLEEF_F64(atan2, u10)(y.v, x.v)); }
inline VecF hypot(VecF x, VecF y) { return VecF::Batch(TERCEL_SLEEF_F32(hypot, u05)(x.v, y.v)); }
inline VecD hypot(VecD x, VecD y) { return VecD::Batch(TERCEL_SLEEF_F64(hypot, u05)(x.v, y.v)); }

#if TERCEL_ISA_LEVEL == 0
#define TERCEL_ROUNDING(name, sleef_name)                                               \
  inline VecF name(VecF x) { return VecF::Batch(TERCEL_SLEEF_F32(sleef_name, )(x.v)); } \
  inline VecD name(VecD x) { return VecD::Batch(TERCEL_SLEEF_F64(sleef_name, )(x.v)); }
TERCEL_ROUNDING(floor, floor)
TERCEL_ROUNDING(ceil, ceil)
TERCEL_ROUNDING(trunc, trunc)
TERCEL_ROUNDING(round, rint)
#undef TERCEL_ROUNDING
#elif TERCEL_ISA_LEVEL == 1
#define TERCEL_ROUNDING(name, mode)                                                                \
  inline VecF name(VecF x) { return VecF::Batch(_mm256_round_ps(x.v, mode | _MM_FROUND_NO_EXC)); } \
  inline VecD name(VecD x) { return VecD::Batch(_mm256_round_pd(x.v, mode | _MM_FROUND_NO_EXC)); }
#else
#define TERCEL_ROUNDING(name, mode)                                                                     \
  inline VecF name(VecF x) { return VecF::Batch(_mm512_roundscale_ps(x.v, mode | _MM_FROUND_NO_EXC)); } \
  inline VecD name(VecD x) { return VecD::Batch(_mm512_roundscale_pd(x.v, mode | _MM_FROUND_NO_EXC)); }
#endif
#if TERCEL_ISA_LEVEL > 0
TERCEL_ROUNDING(floor, _MM_FROUND_TO_NEG_INF)
TERCEL_ROUNDING(ceil, _MM_FROUND_TO_POS_INF)
TERCEL_ROUNDING(trunc, _MM_FROUND_TO_ZERO)
/** Round to nearest, ties to even. */
TERCEL_ROUNDING(round, _MM_FROUND_TO_NEAREST_INT)
#undef TERCEL_ROUNDING
#endif

template <class T>
Mask<T> isnan(Vec<T> x) {
  return x != x;
}
template <class T>
Mask<T> isfinite(Vec<T> x) {
  return abs(x) <= Vec<T>(std::numeric_limits<T>::max());
}
/** NaN if either operand is. */
template <class T>
Vec<T> maximum(Vec<T> a, Vec<T> b) {
  return where((a > b) | isnan(a), a, b);
}
template <class T>
Vec<T> minimum(Vec<T> a, Vec<T> b) {
  return where((a < b) | isnan(a), a, b);
}
template <class T>
Vec<T> divide(Vec<T> a, Vec<T> b) {
  return a / b;
}
template <class T>
[[gnu::noinline]] Vec<T> fmod_by_lanes(Vec<T> a, Vec<T> b) {
  alignas(64) T x[Vec<T>::kSize], y[Vec<T>::kSize];
  a.store(x);
  b.store(y);
  for (int64_t i = 0; i < Vec<T>::kSize; ++i) {
    if constexpr (std::is_same_v<T, float>)
      x[i] = __builtin_fmodf(x[i], y[i]);
    else
      x[i] = __builtin_fmod(x[i], y[i]);
  }
  return Vec<T>::load(x);
}
/** Remainder of truncating division: exact, with the sign of a. */
template <class T>
Vec<T> fmod(Vec<T> a, Vec<T> b) {
#if TERCEL_ISA_LEVEL >= 1
  // A rounded quotient that small is at most one too large. The remainder for either is a number of the type, so that a
  // fused multiplication and addition is exact.
  constexpr T kLimit = sizeof(T) == 4 ? T(8388608) : T(4503599627370496);  // 2^23, 2^52
  const Vec<T> size = abs(a), by = abs(b), zero(0), quotient = trunc(size / by);
  const Vec<T> rough = multiply_add(-quotient, by, size), rest = where(rough < zero, rough + by, rough);
  const Vec<T> result = copysign(where(size < by, size, rest), a);
  // NaN by 0.
  const Mask<T> exact = (quotient < Vec<T>(kLimit)) | (by == zero);
  return any(!exact) ? where(exact, result, fmod_by_lanes(a, b)) : result;
#else
  return fmod_by_lanes(a, b);
#endif
}
/** Remainder of floor division: it has the sign of b. */
template <class T>
Vec<T> remainder(Vec<T> a, Vec<T> b) {
  const Vec<T> r = fmod(a, b), zero(0);
  return where((r != zero) & ((r < zero) ^ (b < zero)), r + b, r);
}
/** floor(a / b), also if the quotient is rounded up; NaN for infinite a. */
template <class T>
Vec<T> floor_divide(Vec<T> a, Vec<T> b) {
  const Vec<T> zero(0), rough = a / b;
  // a - remainder is a multiple of b up to rounding, so the quotient is nearly an integer.
  const Vec<T> near = round((a - remainder(a, b)) / b);
  const Vec<T> whole = where(near == zero, copysign(zero, rough), near);
  // For an infinite divisor: -1 if the signs differ.
  const Vec<T> by_infinity = where((a != zero) & ((a < zero) ^ (b < zero)), Vec<T>(-1), copysign(zero, rough));
  const Mask<T> ordinary = (b != zero) & isfinite(rough);
  const Vec<T> of_finite = where(ordinary, where(isfinite(b), whole, by_infinity), rough);
  return where((b == zero) | isfinite(a), of_finite, a - a);
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
