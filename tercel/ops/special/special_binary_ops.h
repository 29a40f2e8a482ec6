// Special ops of two tensors; see Note [Special ops] in special_unary_ops.h.
#pragma once

#include <cmath>

#include "tercel/ops/common/int_math_impl.h"
#include "tercel/ops/common/op_list_impl.h"
#include "tercel/ops/special/special_math_impl.h"

namespace tercel::special::op {

// One line per member, so that the ops read as a table.
// clang-format off

struct Polygamma {
  TERCEL_OP("polygamma", Float)
  template <class V> static V fwd(V n, V x) { return polygamma(n, x); }
  template <class V> static V db(V n, V x) { return polygamma(n + V(1), x); }
};
struct Zeta {
  TERCEL_OP("special_zeta", Float)
  template <class V> static V fwd(V x, V q) { return zeta(x, q); }
  template <class V> static V db(V x, V q) { return -(x * special_zeta(x + V(1), q)); }
};
struct Igamma {
  TERCEL_OP("igamma", Float)
  template <class V> static V fwd(V a, V x) { return igamma(a, x); }
  template <class V> static V db(V a, V x) { return exp((a - V(1)) * log(x) - x - lgamma(a)); }
};
struct Igammac {
  TERCEL_OP("igammac", Float)
  template <class V> static V fwd(V a, V x) { return igammac(a, x); }
  template <class V> static V db(V a, V x) { return -exp((a - V(1)) * log(x) - x - lgamma(a)); }
};
struct Logaddexp2 {
  TERCEL_OP("logaddexp2", Float)
  template <class V> static V fwd(V a, V b) { return logaddexp2(a, b); }
  template <class V> static V da(V a, V b) { return V(1) / (V(1) + exp2(where((a == b) & (a - a != V(0)), V(0), b - a))); }
  template <class V> static V db(V a, V b) { return V(1) / (V(1) + exp2(where((a == b) & (a - a != V(0)), V(0), a - b))); }
};
struct Copysign {
  TERCEL_OP("copysign", Float)
  template <class V> static V fwd(V a, V b) { return copysign(a, b); }
  template <class V> static V da(V a, V b) { return where(a == V(0), V(0), sign(a) * copysign(V(1), b)); }
  template <class V> static V db(V, V) { return V(0); }
};
struct Xlogy {
  TERCEL_OP("xlogy", Float)
  template <class V> static V fwd(V a, V b) { return xlogy(a, b); }
  template <class V> static V da(V a, V b) { return where(a == V(0), where(b <= V(0), V(0), log(b)), log(b)); }
  template <class V> static V db(V a, V b) { return a / b; }
};
struct Xlog1py {
  TERCEL_OP("special_xlog1py", Float)
  template <class V> static V fwd(V a, V b) { return xlog1py(a, b); }
  template <class V> static V da(V a, V b) { return where(a == V(0), where(b <= V(-1), V(0), log(V(1) + b)), log(V(1) + b)); }
  template <class V> static V db(V a, V b) { return a / (V(1) + b); }
};
struct Fmax {
  TERCEL_OP("fmax", Any) TERCEL_SELECTS
  template <class V> static V fwd(V a, V b) { return where(isnan(b), a, where(b > a, b, where(isnan(a), b, a))); }
  template <class V> static V da(V a, V b) { return where(a < b, V(0), where(isnan(b), V(1), where(a == b, V(0.5), where(isnan(a), V(0), V(1))))); }
  template <class V> static V db(V a, V b) { return where(b < a, V(0), where(isnan(b), V(0), where(a == b, V(0.5), V(1)))); }
};
struct Fmin {
  TERCEL_OP("fmin", Any) TERCEL_SELECTS
  template <class V> static V fwd(V a, V b) { return where(isnan(b), a, where(b < a, b, where(isnan(a), b, a))); }
  template <class V> static V da(V a, V b) { return where(a > b, V(0), where(isnan(b), V(1), where(a == b, V(0.5), where(isnan(a), V(0), V(1))))); }
  template <class V> static V db(V a, V b) { return where(b > a, V(0), where(isnan(b), V(0), where(a == b, V(0.5), V(1)))); }
};
struct Heaviside {
  TERCEL_OP("heaviside", Any) TERCEL_CHECKS_OPERANDS
  static constexpr bool no_grad = true, gradient_is_error = true;
  template <class V> static V fwd(V x, V at_zero) { return where(x == V(0), at_zero, where(x > V(0), V(1), where(isnan(x), x, V(0)))); }
};
struct Nextafter {
  TERCEL_OP("nextafter", Float) TERCEL_CHECKS_OPERANDS
  static constexpr bool own_precision = true;
  static float fwd(float a, float b) { return std::nextafter(a, b); }
  static double fwd(double a, double b) { return std::nextafter(a, b); }
  template <class V> static V da(V a, V b) { return V(where(a == b, V(0), V(1))); }
  template <class V> static V db(V, V) { return V(0); }
};
struct Gcd {
  TERCEL_OP("gcd", Integral)
  static constexpr bool no_grad = true;
  template <class T> static Int<T> fwd(Int<T> a, Int<T> b) { return greatest_divisor(abs(a), abs(b)); }
  // Computed on unsigned numbers, so that the lowest number's magnitude is not lost.
  template <class T> static Int<T> greatest_divisor(Int<T> a, Int<T> b) {
    auto x = a.bits(), y = b.bits();
    while (y != 0) {
      const auto rest = static_cast<decltype(y)>(x % y);
      x = y;
      y = rest;
    }
    return Int<T>::wrap(x);
  }
};
struct Lcm {
  TERCEL_OP("lcm", Integral)
  static constexpr bool no_grad = true;
  template <class T> static Int<T> fwd(Int<T> a, Int<T> b) {
    const Int<T> divisor = Gcd::fwd(a, b);
    return divisor == Int<T>(0) ? Int<T>(0) : abs(divide(a, divisor) * b);
  }
};
// Shift by any amount: a negative one, or one of at least the number's width, shifts everything out.
struct LeftShift {
  TERCEL_OP("bitwise_left_shift", Integral)
  static constexpr bool no_grad = true;
  template <class T> static Int<T> fwd(Int<T> a, Int<T> b) {
    return b.bits() < sizeof(T) * 8 ? Int<T>::wrap(a.bits() << b.bits()) : Int<T>(0);
  }
};
struct RightShift {
  TERCEL_OP("bitwise_right_shift", Integral)
  static constexpr bool no_grad = true;
  template <class T> static Int<T> fwd(Int<T> a, Int<T> b) {
    constexpr int kLast = sizeof(T) * 8 - 1;
    return Int<T>(a.v >> (b.bits() <= kLast ? static_cast<int>(b.bits()) : kLast)) * Int<T>(std::is_signed_v<T> || b.bits() <= kLast);
  }
};
// Polynomials of a given degree.
#define TERCEL_POLYNOMIAL(Functor, function, value) \
  struct Functor { \
    TERCEL_OP(#function, Float) \
    static constexpr const char* node_name = "Special" #Functor "Backward0"; \
    template <class V> static V fwd(V x, V n) { return value; } \
  };
TERCEL_POLYNOMIAL(ChebyshevPolynomialT, special_chebyshev_polynomial_t, special_chebyshev_polynomial_t(x, n))
TERCEL_POLYNOMIAL(ChebyshevPolynomialU, special_chebyshev_polynomial_u, special_chebyshev_polynomial_u(x, n))
TERCEL_POLYNOMIAL(ChebyshevPolynomialV, special_chebyshev_polynomial_v, special_chebyshev_polynomial_v(x, n))
TERCEL_POLYNOMIAL(ChebyshevPolynomialW, special_chebyshev_polynomial_w, special_chebyshev_polynomial_w(x, n))
TERCEL_POLYNOMIAL(HermitePolynomialH, special_hermite_polynomial_h, special_hermite_polynomial_h(x, n))
TERCEL_POLYNOMIAL(HermitePolynomialHe, special_hermite_polynomial_he, special_hermite_polynomial_he(x, n))
TERCEL_POLYNOMIAL(LaguerrePolynomialL, special_laguerre_polynomial_l, special_laguerre_polynomial_l(x, n))
TERCEL_POLYNOMIAL(LegendrePolynomialP, special_legendre_polynomial_p, special_legendre_polynomial_p(x, n))
TERCEL_POLYNOMIAL(ShiftedChebyshevPolynomialT, special_shifted_chebyshev_polynomial_t, special_chebyshev_polynomial_t(x + x - V(1), n))
TERCEL_POLYNOMIAL(ShiftedChebyshevPolynomialU, special_shifted_chebyshev_polynomial_u, special_chebyshev_polynomial_u(x + x - V(1), n))
TERCEL_POLYNOMIAL(ShiftedChebyshevPolynomialV, special_shifted_chebyshev_polynomial_v, special_chebyshev_polynomial_v(x + x - V(1), n))
TERCEL_POLYNOMIAL(ShiftedChebyshevPolynomialW, special_shifted_chebyshev_polynomial_w, special_chebyshev_polynomial_w(x + x - V(1), n))
#undef TERCEL_POLYNOMIAL
// Truncated quotient: exact for integers; for floating-point numbers, that of the rounded quotient.
struct DivTrunc {
  TERCEL_OP("div", Number)
  static constexpr bool no_grad = true, own_precision = true;
  static float fwd(float a, float b) { return std::trunc(a / b); }
  static double fwd(double a, double b) { return std::trunc(a / b); }
  template <class T> static Int<T> fwd(Int<T> a, Int<T> b) { return divide(a, b); }
};

// clang-format on

}  // namespace tercel::special::op

/** X(public function, functor) of special ops of two tensors. */
#define TERCEL_SPECIAL_BINARY_OPS(X)                                     \
  X(igamma, Igamma)                                                      \
  X(igammac, Igammac)                                                    \
  X(special_zeta, Zeta)                                                  \
  X(logaddexp2, Logaddexp2)                                              \
  X(copysign, Copysign)                                                  \
  X(xlogy, Xlogy)                                                        \
  X(special_xlog1py, Xlog1py)                                            \
  X(fmax, Fmax)                                                          \
  X(fmin, Fmin)                                                          \
  X(heaviside, Heaviside)                                                \
  X(nextafter, Nextafter)                                                \
  X(gcd, Gcd)                                                            \
  X(lcm, Lcm)                                                            \
  X(bitwise_left_shift, LeftShift)                                       \
  X(bitwise_right_shift, RightShift)                                     \
  X(special_chebyshev_polynomial_t, ChebyshevPolynomialT)                \
  X(special_chebyshev_polynomial_u, ChebyshevPolynomialU)                \
  X(special_chebyshev_polynomial_v, ChebyshevPolynomialV)                \
  X(special_chebyshev_polynomial_w, ChebyshevPolynomialW)                \
  X(special_hermite_polynomial_h, HermitePolynomialH)                    \
  X(special_hermite_polynomial_he, HermitePolynomialHe)                  \
  X(special_laguerre_polynomial_l, LaguerrePolynomialL)                  \
  X(special_legendre_polynomial_p, LegendrePolynomialP)                  \
  X(special_shifted_chebyshev_polynomial_t, ShiftedChebyshevPolynomialT) \
  X(special_shifted_chebyshev_polynomial_u, ShiftedChebyshevPolynomialU) \
  X(special_shifted_chebyshev_polynomial_v, ShiftedChebyshevPolynomialV) \
  X(special_shifted_chebyshev_polynomial_w, ShiftedChebyshevPolynomialW)

namespace tercel {

#define TERCEL_LIST_ENTRY(function, Functor) , special::op::Functor
/** The list with two more, whose public functions are written out in special.cpp and composite.cpp. */
using SpecialBinaryOps =
    OpListAfter<void TERCEL_SPECIAL_BINARY_OPS(TERCEL_LIST_ENTRY), special::op::Polygamma, special::op::DivTrunc>;
#undef TERCEL_LIST_ENTRY

}  // namespace tercel
