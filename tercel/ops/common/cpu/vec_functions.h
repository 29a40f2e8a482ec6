// Tercel's own mathematical functions of Vec<T>.
//
// Note [Own mathematics]
// tools/fit_polynomials.py computes the coefficients and prints vec_tables.h; tests/build/fit_polynomials_test.py
// checks that both agree. They are minimax fits for the intervals of these functions, rounded to the type.
// tests/ops/common/vec_math_test.cpp checks the errors stated beside the functions, in units in the last place (ulp),
// and that AVX2 and AVX-512 give the same bits.
//
// tanh and erf are polynomials about the centre of one of 16 intervals, whose coefficients are looked up (Note [Lookups
// in 16 intervals]): no division, no exponential function, no branch. The interval about zero has an odd polynomial, so
// that small and subnormal numbers keep their precision; the sign is applied at the end. Centres of tanh are chosen
// such that its value there is nearly a number of the type; erf's intervals have equal width, and its table has a row
// of corrections.
//
// The float64 versions are long and used often, so they are not inlined.
#pragma once

#include <utility>

#include "tercel/ops/common/cpu/vec_bits.h"
#include "tercel/ops/common/cpu/vec_tables.h"

namespace tercel::TERCEL_ISA {
namespace {

/** The polynomial with these coefficients, highest power first. */
template <class T, size_t kCount>
TERCEL_ALWAYS_INLINE Vec<T> polynomial(Vec<T> x, const T (&c)[kCount]) {
  return [&]<size_t... kPower>(std::index_sequence<kPower...>) {
    Vec<T> sum(c[0]);
    ((sum = multiply_add(sum, x, Vec<T>(c[kPower + 1]))), ...);
    return sum;
  }
  (std::make_index_sequence<kCount - 1>());
}

#if TERCEL_ISA_LEVEL >= 1

/** Two intervals in each octave from 1/16 to 16 (1/8 to 32 in float64), given by the last bits of the exponent and the
 * first of the mantissa. Rows: centres, values there, coefficients.
 */
inline Vec<float> tanh_of(Vec<float> x) {
  const Vec<float> size = lesser(15.9F, abs(x));
  const Rows<float, kTanhF> rows(top_bits(greater(0.0625F, size)));
  return copysign(polynomial(rows, 1, size - rows[0]), x);
}
[[gnu::noinline]] inline Vec<double> tanh_of(Vec<double> x) {
  const Vec<double> size = lesser(31, abs(x));
  const Rows<double, kTanhD> rows(top_bits(greater(0.125, size)));
  return copysign(polynomial(rows, 1, size - rows[0]), x);
}
/** Intervals about the multiples of a step, to which a sum rounds. Rows: corrections of the values, values,
 * coefficients. */
template <class T, const auto& kTable>
TERCEL_ALWAYS_INLINE Vec<T> erf_by(Vec<T> x, T step, T most) {
  // 1.5 times the power of two whose unit in the last place is 1.
  constexpr T kRounding = sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0);
  const Vec<T> size = lesser(most, abs(x));
  const Vec<T> rounded = multiply_add(size, Vec<T>(1 / step), Vec<T>(kRounding));
  const Rows<T, kTable> rows(bits_of(rounded));
  const Vec<T> d = multiply_add(rounded - Vec<T>(kRounding), Vec<T>(-step), size);
  // About zero, the slope is 1 plus a small part.
  const Vec<T> rest = where(size < Vec<T>(step / 2), size, rows[0]);
  return copysign(multiply_add(polynomial(rows, 2, d), d, rest) + rows[1], x);
}
inline Vec<float> erf_of(Vec<float> x) { return erf_by<float, kErfF>(x, 0.265625F, 4.1F); }
[[gnu::noinline]] inline Vec<double> erf_of(Vec<double> x) { return erf_by<double, kErfD>(x, 0.390625, 6.05); }

/** log(2) is in two parts, both positive, as e may be infinite. */
template <class T, size_t kCount>
TERCEL_ALWAYS_INLINE Vec<T> log_by(Vec<T> x, const T (&coefficients)[kCount], const T (&ln2)[2]) {
  const Parts<T> p(x);
  const Vec<T> q = polynomial(p.z, coefficients), low = p.e * Vec<T>(ln2[1]);
  return multiply_add(p.e, Vec<T>(ln2[0]), multiply_add(p.z * p.z, q, low) + p.z);
}
/** 0.9 ulp. */
inline Vec<float> log_of(Vec<float> x) { return log_by(x, kLogF, kLn2BelowF); }
[[gnu::noinline]] inline Vec<double> log_of(Vec<double> x) { return log_by(x, kLogD, kLn2BelowD); }

/** Logarithm to a base: of 2^e, a multiple of e in two parts, and of 1 + z, `slope` times z in two parts and the rest.
 */
template <class T, size_t kCount>
TERCEL_ALWAYS_INLINE Vec<T> log_of_base(Vec<T> x, const T (&coefficients)[kCount], const T (&slope)[2], T high, T low) {
  const Parts<T> p(x);
  const Vec<T> first(slope[0]), line = p.z * first, line_rest = multiply_add(p.z, first, -line);
  const Vec<T> q = polynomial(p.z, coefficients);
  Vec<T> rest = multiply_add(p.z * p.z, q, multiply_add(p.z, Vec<T>(slope[1]), line_rest));
  if (low != 0) rest = multiply_add(p.e, Vec<T>(low), rest);
  // The rounding error of the sum is added back, since the two may cancel.
  const Vec<T> whole = p.e * Vec<T>(high), sum = whole + line, lost = line - (sum - whole);
  return sum + where(abs(p.e) < Vec<T>(2000), lost + rest, Vec<T>(0));
}
/** 1.2 ulp, 0.9 of log10. */
inline Vec<float> log2_of(Vec<float> x) { return log_of_base(x, kLog2F, kLog2eF, 1.0F, 0.0F); }
[[gnu::noinline]] inline Vec<double> log2_of(Vec<double> x) { return log_of_base(x, kLog2D, kLog2eD, 1.0, 0.0); }
inline Vec<float> log10_of(Vec<float> x) { return log_of_base(x, kLog10F, kLog10eF, kLog10of2F[0], kLog10of2F[1]); }
[[gnu::noinline]] inline Vec<double> log10_of(Vec<double> x) {
  return log_of_base(x, kLog10D, kLog10eD, kLog10of2D[0], kLog10of2D[1]);
}

/** e^x = 2^n e^r with |r| <= log(2) / 2, 1 ulp; the bounds are beyond the range of finite nonzero results. */
inline Vec<float> exp_of(Vec<float> x) {
  // 1.5 times 2^23: the last bits of a sum with it are those of n.
  const Vec<float> rounding(12582912.0F);
  const auto rounded_n = [&](Vec<float> y) { return multiply_add(y, Vec<float>(kLog2eF[0]), rounding); };
  const auto power_of_rest = [](Vec<float> y, Vec<float> n) {
    const Vec<float> r = multiply_add(n, Vec<float>(-kLn2F[0]), y);
    return polynomial(multiply_add(n, Vec<float>(-kLn2F[1]), r), kExpF);
  };
#if TERCEL_ISA_LEVEL == 1
  // Without bounds and by an addition to the exponent where every result is a normal number.
  if (!any(!(abs(x) <= Vec<float>(87)))) [[likely]] {
    const Vec<float> rounded = rounded_n(x), power = power_of_rest(x, rounded - rounding);
    return float_of(_mm256_add_epi32(bits_of(power), _mm256_slli_epi32(bits_of(rounded), 23)));
  }
#endif
  const Vec<float> bounded = lesser(130, greater(-150, x)), n = rounded_n(bounded) - rounding;
  return scale(power_of_rest(bounded, n), n);
}
[[gnu::noinline]] inline Vec<double> exp_of(Vec<double> x) {
  const Vec<double> bounded = lesser(1100, greater(-1100, x)), n = nearest(bounded * Vec<double>(kLog2eD[0]));
  Vec<double> r = multiply_add(n, Vec<double>(-kLn2D[0]), bounded);
  r = multiply_add(n, Vec<double>(-kLn2D[1]), r);
  return scale(polynomial(r, kExpD), n);
}
/** 2^n (e^r - 1 + 1 - 2^-n), 1.4 ulp. */
inline Vec<float> expm1_of(Vec<float> x) {
  const Vec<float> bounded = lesser(130, greater(-30, x)), n = nearest(bounded * Vec<float>(kLog2eF[0]));
  Vec<float> r = multiply_add(n, Vec<float>(-kLn2F[0]), bounded);
  r = multiply_add(n, Vec<float>(-kLn2F[1]), r);
  const Vec<float> p = multiply_add(r * r, polynomial(r, kExpm1F), r);
  const Vec<float> result = scale(p + (Vec<float>(1) - inverse_power(n)), n);
  return where(n == Vec<float>(0), copysign(p, x), result);
}
/** 2^n (1 + t) = e^(-x^2) times e^(x^2) erfc(x) by a table, 1.8 ulp; what the square loses is put back. Two intervals
 * in each octave of |x| + 1. Rows: centres, values there, coefficients.
 */
inline Vec<float> erfc_of(Vec<float> x) {
  const Vec<float> size = lesser(10.1F, abs(x));
  const Rows<float, kErfcxF> rows(top_bits(size + Vec<float>(1)));
  const Vec<float> value = polynomial(rows, 1, size - rows[0]);
  const Vec<float> square = size * size, n = nearest(square * Vec<float>(-kLog2eF[0]));
  // Minus those of the exponent: what the square lacks, and both with n times log(2), whose first part is exact.
  const Vec<float> square_rest = multiply_add(size, size, -square);
  const Vec<float> rest = multiply_add(n, Vec<float>(kLn2F[1]), square_rest);
  const Vec<float> r = -(multiply_add(n, Vec<float>(kLn2F[0]), square) + rest);
  const Vec<float> t = multiply_add(r * r, polynomial(r, kExpm1F), r);
  const Vec<float> result = scale(multiply_add(value, t, value), n);
  return where(x < Vec<float>(0), Vec<float>(2) - result, result);
}

/** The remainder of x after multiples of pi / kParts (odd halves of them with kShifted), and the multiple's bits.
 */
template <class T, int kParts, bool kShifted>
struct Angle {
  Vec<T> r;
  Bits bits;
  explicit Angle(Vec<T> x) {
    constexpr bool kFloat = sizeof(T) == 4;
    // 1.5 times 2^23 or 2^52, whose unit in the last place is 1.
    const Vec<T> rounding(kFloat ? T(12582912.0) : T(6755399441055744.0)), half(kShifted ? T(0.5) : T(0));
    const Vec<T> whole = multiply_add(x, Vec<T>(T(kParts * 0.3183098861837907)), half) + rounding;
    bits = bits_of(whole);
    const Vec<T> n = half - (whole - rounding);
    const auto add_multiples = [&](const auto& pi) {
      r = multiply_add(n, Vec<T>(pi[0] / kParts), x);
      r = multiply_add(n, Vec<T>(pi[1] / kParts), r);
      r = multiply_add(n, Vec<T>(pi[2] / kParts), r);
    };
    if constexpr (kFloat)
      add_multiples(kPiF);
    else
      add_multiples(kPiD);
  }
};
/** Below this bound three parts of pi are enough; infinities and NaN are above. */
template <class T>
Mask<T> is_plain_angle(Vec<T> x) {
  return abs(x) < Vec<T>(sizeof(T) == 4 ? 30000 : 1e6);
}
/** 1.9 ulp. */
template <bool kCosine, class T, size_t kCount>
TERCEL_ALWAYS_INLINE Vec<T> sine_by(Vec<T> x, const T (&coefficients)[kCount]) {
  const Angle<T, 1, kCosine> angle(x);
  const Vec<T> u = angle.r * angle.r;
  const Vec<T> sine = multiply_add(angle.r * u, polynomial(u, coefficients), angle.r);
  const Vec<T> out = flip_if_odd(sine, angle.bits);
  return kCosine ? out : where(x == Vec<T>(0), x, out);
}
template <bool kCosine>
Vec<float> sine_of(Vec<float> x) {
  return sine_by<kCosine>(x, kSineF);
}
template <bool kCosine>
Vec<double> sine_of(Vec<double> x) {
  return sine_by<kCosine>(x, kSineD);
}
/** 2.5 ulp. */
inline Vec<float> tan_of(Vec<float> x) {
  const Angle<float, 2, false> angle(x);
  const Vec<float> u = angle.r * angle.r, t = multiply_add(angle.r * u, polynomial(u, kTanF), angle.r);
  return where(x == Vec<float>(0), x, where(is_odd(angle.bits), Vec<float>(-1) / t, t));
}

#endif

/** 1.1 ulp: of 1 / x beyond 1, from a right angle in two parts. */
inline Vec<float> atan_of(Vec<float> x) {
  const Vec<float> size = abs(x), one(1), zero(0);
  const Mask<float> large = size > one;
  const Vec<float> t = where(large, -one, size) / where(large, size, one), u = t * t;
  const Vec<float> small = multiply_add(t * u, polynomial(u, kAtanF), where(large, Vec<float>(kPiF[1] / 2), zero)) + t;
  return copysign(small + where(large, Vec<float>(kPiF[0] / 2), zero), x);
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
