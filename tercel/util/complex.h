// Complex element type with the layout of std::complex, usable in kernels.
//
// Note [Complex functions]
// + - * are the textbook formulas, as in NumPy and PyTorch: unlike C's Annex G they do not turn NaNs into infinities. A
// quotient is scaled so that no intermediate value overflows or underflows. The transcendental functions are the C
// library's (Annex G in special cases), in double for both precisions.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "tercel/util/macros.h"

namespace tercel {

template <class T>
struct Complex;

namespace detail {
template <class C, class T>
concept OtherComplex = !std::is_same_v<C, Complex<T>> && requires(const C& c) {
  static_cast<T>(c.real());
  static_cast<T>(c.imag());
};
}  // namespace detail

/** re + im i; T is float or double. */
template <class T>
struct Complex {
  T re, im;

  Complex() = default;
  TERCEL_HD constexpr Complex(T real_part, T imaginary_part) : re(real_part), im(imaginary_part) {}
  template <class U>
  requires std::is_arithmetic_v<U> TERCEL_HD constexpr explicit Complex(U value) : re(static_cast<T>(value)), im(0) {}
  /** From std::complex, or the other precision. */
  template <class C>
  requires detail::OtherComplex<C, T> TERCEL_HD constexpr explicit Complex(const C& c)
      : re(static_cast<T>(c.real())), im(static_cast<T>(c.imag())) {}
  TERCEL_HD constexpr T real() const { return re; }
  TERCEL_HD constexpr T imag() const { return im; }
  /** Converts to a type C made of two parts, such as std::complex<T>. */
  template <class C>
  constexpr C as() const {
    return C(re, im);
  }

  friend TERCEL_HD constexpr Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend TERCEL_HD constexpr Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend TERCEL_HD constexpr Complex operator-(Complex a) { return {-a.re, -a.im}; }
  friend TERCEL_HD constexpr Complex operator*(Complex a, Complex b) {
    // Products of floats are exact in double, so the result does not depend on whether the compiler fuses them.
    using Wide = double;
    const Wide x = static_cast<Wide>(a.re), y = static_cast<Wide>(a.im);
    const Wide u = static_cast<Wide>(b.re), v = static_cast<Wide>(b.im);
    return {static_cast<T>(x * u - y * v), static_cast<T>(x * v + y * u)};
  }
  friend TERCEL_HD constexpr Complex operator*(T a, Complex b) { return {a * b.re, a * b.im}; }
  friend TERCEL_HD constexpr Complex operator*(Complex a, T b) { return {a.re * b, a.im * b}; }
  friend TERCEL_HD constexpr Complex operator/(Complex a, T b) { return {a.re / b, a.im / b}; }
  friend TERCEL_HD constexpr Complex operator/(Complex a, Complex b) {
    if constexpr (std::is_same_v<T, float>) {
      // Squares and products of floats do not leave the range of double.
      const double c = static_cast<double>(b.re), d = static_cast<double>(b.im), n = c * c + d * d;
      const double x = static_cast<double>(a.re), y = static_cast<double>(a.im);
      if (n == 0 || !(n < std::numeric_limits<double>::infinity())) return divide_special(a, b);
      return {static_cast<T>((x * c + y * d) / n), static_cast<T>((y * c - x * d) / n)};
    } else {
      return divide_special(a, b);
    }
  }
  friend TERCEL_HD constexpr bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
  friend TERCEL_HD constexpr bool operator!=(Complex a, Complex b) { return !(a == b); }

  friend TERCEL_HD constexpr Complex where(bool condition, Complex a, Complex b) { return condition ? a : b; }
  friend TERCEL_HD constexpr Complex conj(Complex a) { return {a.re, -a.im}; }
  friend TERCEL_HD constexpr bool isnan(Complex a) { return a.re != a.re || a.im != a.im; }
  friend TERCEL_HD constexpr bool isfinite(Complex a) {
    constexpr T kMax = std::numeric_limits<T>::max();
    return a.re <= kMax && a.re >= -kMax && a.im <= kMax && a.im >= -kMax;
  }
  friend TERCEL_HD constexpr bool isinf(Complex a) {
    constexpr T kInf = std::numeric_limits<T>::infinity();
    return a.re == kInf || a.re == -kInf || a.im == kInf || a.im == -kInf;
  }

 private:
  // Smith's division on operands that are scaled by powers of two, so that no step overflows where the result does not.
  static TERCEL_HD constexpr Complex divide_special(Complex a, Complex b) {
    const T c = magnitude(b.re), d = magnitude(b.im);
    if (c == 0 && d == 0) return {a.re / c, a.im / c};
    constexpr T kLarge = std::numeric_limits<T>::max() / 4, kSmall = std::numeric_limits<T>::min() * 4;
    constexpr T kScale = T(1) / std::numeric_limits<T>::epsilon() / std::numeric_limits<T>::epsilon();
    T scale = 1;
    if (c >= kLarge || d >= kLarge) {
      b = b * T(0.25);
      scale = T(0.25);
    } else if (c < kSmall && d < kSmall) {
      b = b * kScale;
      scale = kScale;
    }
    const bool halve = magnitude(a.re) >= kLarge || magnitude(a.im) >= kLarge;
    if (halve) a = a * T(0.25);
    const bool grow = magnitude(a.re) < kSmall && magnitude(a.im) < kSmall;
    if (grow) a = a * kScale;
    Complex q = magnitude(b.re) >= magnitude(b.im) ? smith(a, b) : smith(Complex(a.im, -a.re), Complex(b.im, -b.re));
    q = q * scale;
    if (halve) q = q * T(4);
    if (grow) q = q / kScale;
    return q;
  }
  // |b.re| >= |b.im|
  static TERCEL_HD constexpr Complex smith(Complex a, Complex b) {
    const T ratio = b.im / b.re, divisor = b.re + b.im * ratio;
    // If the ratio underflowed to 0, multiply in another order.
    if (ratio == 0 && b.im != 0)
      return {(a.re + b.im * (a.im / b.re)) / divisor, (a.im - b.im * (a.re / b.re)) / divisor};
    return {(a.re + a.im * ratio) / divisor, (a.im - a.re * ratio) / divisor};
  }
  static TERCEL_HD constexpr T magnitude(T x) { return x < 0 ? -x : x; }
};

static_assert(sizeof(Complex<float>) == 8 && sizeof(Complex<double>) == 16 && std::is_trivial_v<Complex<double>>);

template <class T>
constexpr bool is_complex_number = false;
template <class T>
constexpr bool is_complex_number<Complex<T>> = true;

/** Absolute value; infinite if one part is, even if the other is NaN (C99, G.6). */
template <class T>
T magnitude(Complex<T> x) {
  if constexpr (std::is_same_v<T, float>) {
    const double a = static_cast<double>(x.re), b = static_cast<double>(x.im);
    return isinf(x) ? std::numeric_limits<float>::infinity() : static_cast<float>(__builtin_sqrt(a * a + b * b));
  } else {
    return __builtin_hypot(x.re, x.im);
  }
}
/** Angle in (-pi, pi]. */
template <class T>
T argument(Complex<T> x) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_atan2f(x.im, x.re);
  else
    return __builtin_atan2(x.im, x.re);
}
/** |x| as a complex number, for functors that return the element type. */
template <class T>
Complex<T> abs(Complex<T> x) {
  return Complex<T>(magnitude(x));
}
/** x / |x|; 0 at 0. */
template <class T>
Complex<T> sgn(Complex<T> x) {
  return x == Complex<T>(0) ? x : x / magnitude(x);
}

namespace detail {
__extension__ typedef __complex__ double CDouble;  // NOLINT(modernize-use-using)
inline CDouble to_c(double re, double im) {
  CDouble c;
  __real__ c = re;
  __imag__ c = im;
  return c;
}
template <class T>
CDouble to_c(Complex<T> x) {
  return to_c(static_cast<double>(x.re), static_cast<double>(x.im));
}
template <class T>
Complex<T> from_c(CDouble c) {
  return {static_cast<T>(__real__ c), static_cast<T>(__imag__ c)};
}
}  // namespace detail
/** Defines a function that calls the C library's complex one. */
#define TERCEL_COMPLEX_FUNCTION(name)                             \
  template <class T>                                              \
  Complex<T> name(Complex<T> x) {                                 \
    return detail::from_c<T>(__builtin_c##name(detail::to_c(x))); \
  }
TERCEL_COMPLEX_FUNCTION(exp)
TERCEL_COMPLEX_FUNCTION(log)
TERCEL_COMPLEX_FUNCTION(sqrt)
TERCEL_COMPLEX_FUNCTION(sin)
TERCEL_COMPLEX_FUNCTION(cos)
TERCEL_COMPLEX_FUNCTION(tan)
TERCEL_COMPLEX_FUNCTION(asin)
TERCEL_COMPLEX_FUNCTION(acos)
TERCEL_COMPLEX_FUNCTION(atan)
TERCEL_COMPLEX_FUNCTION(sinh)
TERCEL_COMPLEX_FUNCTION(cosh)
TERCEL_COMPLEX_FUNCTION(tanh)
TERCEL_COMPLEX_FUNCTION(asinh)
TERCEL_COMPLEX_FUNCTION(acosh)
TERCEL_COMPLEX_FUNCTION(atanh)
#undef TERCEL_COMPLEX_FUNCTION

/** exp(x) - 1, exact also near 0. */
template <class T>
Complex<T> expm1(Complex<T> x) {
  // e^a cos b - 1 = expm1(a) cos b - 2 sin(b/2)^2
  const double a = static_cast<double>(x.re), b = static_cast<double>(x.im), half = __builtin_sin(b / 2);
  if (b == 0) return {static_cast<T>(__builtin_expm1(a)), x.im};
  return {static_cast<T>(__builtin_expm1(a) * __builtin_cos(b) - 2 * half * half),
          static_cast<T>(__builtin_exp(a) * __builtin_sin(b))};
}
/** log(1 + x), exact also near 0. */
template <class T>
Complex<T> log1p(Complex<T> x) {
  // |1 + x|^2 = 1 + a (2 + a) + b^2
  const double a = static_cast<double>(x.re), b = static_cast<double>(x.im);
  if (magnitude(x) < T(0.5))
    return {static_cast<T>(0.5 * __builtin_log1p(a * (2 + a) + b * b)), static_cast<T>(__builtin_atan2(b, 1 + a))};
  return detail::from_c<T>(__builtin_clog(detail::to_c(1 + a, b)));
}
/** x to the power y; 1 if y is 0; 0 if x is 0 and y has a positive real part. */
template <class T>
Complex<T> pow(Complex<T> x, Complex<T> y) {
  if (y == Complex<T>(0)) return Complex<T>(1);
  if (x == Complex<T>(0) && y.re > 0) return Complex<T>(0);
  // Small integer powers by multiplication, which is exact where the result is.
  if (y.im == 0 && y.re == T(2)) return x * x;
  return detail::from_c<T>(__builtin_cpow(detail::to_c(x), detail::to_c(y)));
}

}  // namespace tercel
