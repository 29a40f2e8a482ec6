// Tercel's own mathematical functions of Vec<T>.
//
// Note [Own mathematics]
// Coefficients are minimax fits (Lawson's iteration, or interpolation at Chebyshev nodes, in 50 digits) made for these
// intervals and rounded to the type. tests/ops/common/vec_math_test.cpp checks the errors stated beside the
// functions, in units in the last place (ulp).
//
// With AVX-512, tanh and erf are polynomials about the centre of one of 16 intervals, whose coefficients are selected
// by one permutation each: no division, no exponential function, no branch. The interval about zero has an odd
// polynomial, so that small and subnormal numbers keep their precision; the sign is applied at the end. The centres for
// tanh are chosen such that its value there is nearly a number of the type; erf's intervals have equal width, and its
// table has a row of corrections.
//
// The float64 versions are long and used often, so they are not inlined.
#pragma once

#include "tercel/ops/common/cpu/vec.h"

#if TERCEL_ISA_LEVEL == 2
#include "tercel/ops/common/cpu/vec_tables.h"
#endif

namespace tercel::TERCEL_ISA {
namespace {

// a * b + c, rounded once if the instruction set supports it (xsimd's fma rounds twice with AVX-512).
#if TERCEL_ISA_LEVEL == 2
inline Vec<float> multiply_add(Vec<float> a, Vec<float> b, Vec<float> c) {
  return Vec<float>::Batch(_mm512_fmadd_ps(a.v, b.v, c.v));
}
inline Vec<double> multiply_add(Vec<double> a, Vec<double> b, Vec<double> c) {
  return Vec<double>::Batch(_mm512_fmadd_pd(a.v, b.v, c.v));
}
#elif TERCEL_ISA_LEVEL == 1
inline Vec<float> multiply_add(Vec<float> a, Vec<float> b, Vec<float> c) {
  return Vec<float>::Batch(_mm256_fmadd_ps(a.v, b.v, c.v));
}
inline Vec<double> multiply_add(Vec<double> a, Vec<double> b, Vec<double> c) {
  return Vec<double>::Batch(_mm256_fmadd_pd(a.v, b.v, c.v));
}
#else
template <class T>
Vec<T> multiply_add(Vec<T> a, Vec<T> b, Vec<T> c) {
  return a * b + c;
}
#endif
/** The polynomial with these coefficients, highest power first. */
template <class T, class... C>
Vec<T> polynomial(Vec<T> x, double first, C... rest) {
  Vec<T> sum(static_cast<T>(first));
  static_cast<void>(((sum = multiply_add(sum, x, Vec<T>(static_cast<T>(rest)))), ...));
  return sum;
}

#if TERCEL_ISA_LEVEL == 2

/** Selects from a table row by the low four bits of the lanes of i. */
inline Vec<float> choose(const float* row, __m512i i) {
  return Vec<float>::Batch(_mm512_permutexvar_ps(i, _mm512_load_ps(row)));
}
inline Vec<double> choose(const double* row, __m512i i) {
  return Vec<double>::Batch(_mm512_permutex2var_pd(_mm512_load_pd(row), i, _mm512_load_pd(row + 8)));
}
/** The polynomial whose coefficients are selected from the rows, constant term first. */
template <class T, size_t kRows>
Vec<T> chosen_polynomial(const T (&rows)[kRows][16], size_t first, __m512i i, Vec<T> d) {
  Vec<T> sum = choose(rows[kRows - 1], i);
  for (size_t k = kRows - 1; k-- > first;) sum = multiply_add(sum, d, choose(rows[k], i));
  return sum;
}
inline __m512i bits_of(Vec<float> x) { return _mm512_castps_si512(x.v); }
inline __m512i bits_of(Vec<double> x) { return _mm512_castpd_si512(x.v); }
// Returns the second number if one is NaN.
inline Vec<float> lesser(float a, Vec<float> b) { return Vec<float>::Batch(_mm512_min_ps(_mm512_set1_ps(a), b.v)); }
inline Vec<double> lesser(double a, Vec<double> b) { return Vec<double>::Batch(_mm512_min_pd(_mm512_set1_pd(a), b.v)); }
inline Vec<float> greater(float a, Vec<float> b) { return Vec<float>::Batch(_mm512_max_ps(_mm512_set1_ps(a), b.v)); }
inline Vec<double> greater(double a, Vec<double> b) {
  return Vec<double>::Batch(_mm512_max_pd(_mm512_set1_pd(a), b.v));
}

/**
 * Two intervals per octave from 1/16 to 16 (1/8 to 32 in float64), given by the last bits of the exponent and the first
 * of the mantissa.
 */
template <class T>
Vec<T> tanh_of(Vec<T> x) {
  constexpr T kLeast = T(sizeof(T) == 4 ? 0.0625 : 0.125), kMost = T(sizeof(T) == 4 ? 15.9 : 31);
  const Vec<T> size = lesser(kMost, abs(x));
  const __m512i bits = bits_of(greater(kLeast, size));
  if constexpr (sizeof(T) == 4) {
    const __m512i i = _mm512_srli_epi32(bits, 22);
    return copysign(chosen_polynomial(kTanhF, 1, i, size - choose(kTanhF[0], i)), x);
  } else {
    const __m512i i = _mm512_srli_epi64(bits, 51);
    return copysign(chosen_polynomial(kTanhD, 1, i, size - choose(kTanhD[0], i)), x);
  }
}
/** Intervals about the multiples of a step, to which a sum rounds. */
template <class T>
Vec<T> erf_of(Vec<T> x) {
  constexpr bool kFloat = sizeof(T) == 4;
  // 1.5 times the power of two whose unit in the last place is 1.
  constexpr T kRounding = kFloat ? T(12582912.0) : T(6755399441055744.0);
  constexpr T kStep = kFloat ? T(0.265625) : T(0.390625);
  const Vec<T> size = lesser(kFloat ? T(4.1) : T(6.05), abs(x));
  const Vec<T> rounded = multiply_add(size, Vec<T>(T(1) / kStep), Vec<T>(kRounding));
  const __m512i i = bits_of(rounded);
  const Vec<T> d = multiply_add(rounded - Vec<T>(kRounding), Vec<T>(-kStep), size);
  const auto& rows = []() -> const auto& {
    if constexpr (kFloat)
      return kErfF;
    else
      return kErfD;
  }
  ();
  // About zero, the slope is 1 plus a small part.
  const Vec<T> rest = where(size < Vec<T>(kStep / 2), size, choose(rows[0], i));
  return copysign(multiply_add(chosen_polynomial(rows, 2, i, d), d, rest) + choose(rows[1], i), x);
}

/** x = 2^e (1 + z) with z from -1/4 to 1/2; infinities, NaN, zeros and negative numbers give a special e or z. */
template <class T>
struct Parts {
  Vec<T> e, z;
  explicit Parts(Vec<T> x) {
    const Vec<T> one(1);
    if constexpr (sizeof(T) == 4) {
      z = typename Vec<T>::Batch(_mm512_getmant_ps(x.v, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan));
      e = typename Vec<T>::Batch(_mm512_getexp_ps(x.v));
    } else {
      z = typename Vec<T>::Batch(_mm512_getmant_pd(x.v, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan));
      e = typename Vec<T>::Batch(_mm512_getexp_pd(x.v));
    }
    e = where(z < one, e + one, e);
    z = z - one;
  }
};
/** 0.9 ulp. log(2) is split into two positive parts, as e may be infinite. */
inline Vec<float> log_of(Vec<float> x) {
  const Parts p(x);
  const Vec<float> q = polynomial(p.z, -4.4909608e-2, 1.04483314e-1, -1.3162233e-1, 1.4482062e-1, -1.6647767e-1,
                                  1.9990607e-1, -2.5000054e-1, 3.3333454e-1, -0.5);
  const Vec<float> low = p.e * Vec<float>(5.769999e-8F);
  return multiply_add(p.e, Vec<float>(0.69314712F), multiply_add(p.z * p.z, q, low) + p.z);
}
[[gnu::noinline]] inline Vec<double> log_of(Vec<double> x) {
  const Parts p(x);
  const Vec<double> q =
      polynomial(p.z, -0.0074517766465232015, 0.02738880962002591, -0.04774183553310944, 0.056544328388157955,
                 -0.05758217924727411, 0.05886248597008304, -0.062268648401621086, 0.06661910466085627,
                 -0.07143886072817202, 0.07692715826526243, -0.08333322326707127, 0.09090892824759697,
                 -0.09999999398402744, 0.11111111456324255, -0.12500000021551733, 0.142857142818774,
                 -0.16666666666415234, 0.2000000000001956, -0.25000000000000977, 0.33333333333333304, -0.5);
  const Vec<double> low = p.e * Vec<double>(2.3190468138462996e-17);
  return multiply_add(p.e, Vec<double>(0.6931471805599453), multiply_add(p.z * p.z, q, low) + p.z);
}
inline Vec<float> log2_of(Vec<float> x) {
  const Parts p(x);
  const Vec<float> q = polynomial(p.z, -6.479087e-2, 1.5073757e-1, -1.8989088e-1, 2.0893198e-1, -2.4017651e-1,
                                  2.8840348e-1, -3.6067456e-1, 4.809001e-1, -7.213475e-1);
  // 1 / log(2) in two parts. The rounding error of the sum with e is added back, since the two may cancel.
  const Vec<float> slope(1.442695F), line = p.z * slope, line_rest = multiply_add(p.z, slope, -line);
  const Vec<float> rest = multiply_add(p.z * p.z, q, multiply_add(p.z, Vec<float>(1.925963e-8F), line_rest));
  const Vec<float> sum = p.e + line, lost = line - (sum - p.e);
  return sum + where(abs(p.e) < Vec<float>(200), lost + rest, Vec<float>(0));
}

/** e^x = 2^n e^r with |r| <= log(2) / 2, 1 ulp; the bounds are beyond the range of finite nonzero results. */
[[gnu::noinline]] inline Vec<double> exp_of(Vec<double> x) {
  const Vec<double> bounded = lesser(1100, greater(-1100, x));
  const Vec<double> n = Vec<double>::Batch(_mm512_roundscale_pd((bounded * Vec<double>(1.4426950408889634)).v,
                                                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  Vec<double> r = multiply_add(n, Vec<double>(-0.6931471805599453), bounded);
  r = multiply_add(n, Vec<double>(-2.3190468138462996e-17), r);
  const Vec<double> p = polynomial(r, 2.5100377619606372e-8, 2.7620078203806394e-7, 2.7557268476553695e-6,
                                   2.4801521317484083e-5, 0.00019841269863042963, 0.0013888888917199863,
                                   0.008333333333330063, 0.04166666666662416, 0.16666666666666669, 0.5, 1.0, 1.0);
  return Vec<double>::Batch(_mm512_scalef_pd(p.v, n.v));
}
/** 2^n (e^r - 1 + 1 - 2^-n), 1.4 ulp. */
inline Vec<float> expm1_of(Vec<float> x) {
  const Vec<float> bounded = lesser(130, greater(-30, x)), one(1);
  const Vec<float> n = Vec<float>::Batch(
      _mm512_roundscale_ps((bounded * Vec<float>(1.44269504F)).v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  Vec<float> r = multiply_add(n, Vec<float>(-0.693147182F), bounded);
  r = multiply_add(n, Vec<float>(1.90465430e-9F), r);
  const Vec<float> q = polynomial(r, 1.9846726e-4, 1.3940793e-3, 8.333389e-3, 4.166636e-2, 1.6666666e-1, 0.5);
  const Vec<float> p = multiply_add(r * r, q, r), inverse = Vec<float>::Batch(_mm512_scalef_ps(one.v, (-n).v));
  const Vec<float> result = Vec<float>::Batch(_mm512_scalef_ps((p + (one - inverse)).v, n.v));
  return where(n == Vec<float>(0), copysign(p, x), result);
}

/** The remainder of x after multiples of pi / kParts (odd halves of them with kShifted), and the multiple's bits. */
template <int kParts, bool kShifted>
struct Angle {
  Vec<float> r;
  __m512i bits;
  explicit Angle(Vec<float> x) {
    // 1.5 times 2^23, whose unit in the last place is 1.
    const Vec<float> rounding(12582912.0F), half(kShifted ? 0.5F : 0.0F);
    const Vec<float> whole = multiply_add(x, Vec<float>(kParts * 0.318309886F), half) + rounding;
    bits = _mm512_castps_si512(whole.v);
    const Vec<float> n = half - (whole - rounding);
    // Pi in three parts.
    r = multiply_add(n, Vec<float>(3.1415927F / kParts), x);
    r = multiply_add(n, Vec<float>(-8.742278e-8F / kParts), r);
    r = multiply_add(n, Vec<float>(-3.430249e-15F / kParts), r);
  }
};
/** Below this bound three parts are enough; infinities and NaN are above. */
inline Mask<float> is_plain_angle(Vec<float> x) { return abs(x) < Vec<float>(30000); }
/** 2 ulp. */
template <bool kCosine>
Vec<float> sine_of(Vec<float> x) {
  const Angle<1, kCosine> angle(x);
  const Vec<float> u = angle.r * angle.r;
  const Vec<float> q = polynomial(u, 2.6048274e-6, -1.9809195e-4, 8.333061e-3, -1.666666e-1);
  const Vec<float> sine = multiply_add(angle.r * u, q, angle.r);
  const __m512i sign = _mm512_slli_epi32(angle.bits, 31);
  const Vec<float> out = Vec<float>::Batch(_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(sine.v), sign)));
  return kCosine ? out : where(x == Vec<float>(0), x, out);
}
/** 2.5 ulp. */
inline Vec<float> tan_of(Vec<float> x) {
  const Angle<2, false> angle(x);
  const Vec<float> u = angle.r * angle.r;
  const Vec<float> q = polynomial(u, 9.463164e-3, 2.990371e-3, 2.4509694e-2, 5.3389348e-2, 1.3339059e-1, 3.3333147e-1);
  const Vec<float> t = multiply_add(angle.r * u, q, angle.r);
  const Mask<float> odd = Mask<float>::Batch(_mm512_test_epi32_mask(angle.bits, _mm512_set1_epi32(1)));
  return where(x == Vec<float>(0), x, where(odd, Vec<float>(-1) / t, t));
}

#endif

/** 1.3 ulp. For |x| > 1: a right angle, in two parts, minus the arc tangent of 1 / x. */
inline Vec<float> atan_of(Vec<float> x) {
  const Vec<float> size = abs(x), one(1), zero(0);
  const Mask<float> large = size > one;
  const Vec<float> t = where(large, -one, size) / where(large, size, one);
  const Vec<float> u = t * t;
  const Vec<float> q = polynomial(u, -1.7936218e-3, 1.0914606e-2, -3.1177847e-2, 5.7957593e-2, -8.40345e-2,
                                  1.0952186e-1, -1.4264242e-1, 1.9998549e-1, -3.33333e-1);
  const Vec<float> small = multiply_add(t * u, q, where(large, Vec<float>(-4.371139e-8F), zero)) + t;
  return copysign(small + where(large, Vec<float>(1.5707964F), zero), x);
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
