// Elementwise ops that are rarely hot: scalar loops, compiled once instead of per instruction set.
//
// Note [Special ops]
// They are functors as in Note [Functors], of one or two tensors, and use the same iterator, tiles and threads. But V
// is a plain number: double (also for float32), Complex<double> if the op supports complex numbers, Int<T> if it
// supports integers. An op of one tensor has dx(x) or dy(y), one of two has da(a, b) and db(a, b), or no_grad; using an
// undefined gradient is an error, as it is with gradient_is_error. node_name is backward's name if it is not derived
// from the op's. Frequently used ops have vector loops for each instruction set (cpu/special_kernels.cpp): float32 with
// kVectors32, float64 with kVectors64.
#pragma once

#include "tercel/ops/common/op_list_impl.h"
#include "tercel/ops/special/special_math_impl.h"
#include "tercel/util/complex.h"

namespace tercel::special::op {

// One line per member, so that the ops read as a table.
// clang-format off

#define TERCEL_SPECIAL_FWD(function) \
  template <class V> static V fwd(V x) { return function(x); }

struct Tan {
  TERCEL_OP("tan", Float) TERCEL_TAKES_COMPLEX
  static constexpr bool kVectors32 = true, kVectors64 = true;
  TERCEL_SPECIAL_FWD(tan)
  template <class V> static V dy(V y) { return V(1) + y * y; }
};
struct Asin {
  TERCEL_OP("asin", Float) TERCEL_TAKES_COMPLEX
  static constexpr bool kVectors32 = true, kVectors64 = true;
  TERCEL_SPECIAL_FWD(asin)
  template <class V> static V dx(V x) { return V(1) / sqrt(V(1) - x * x); }
};
struct Acos {
  TERCEL_OP("acos", Float) TERCEL_TAKES_COMPLEX
  static constexpr bool kVectors32 = true, kVectors64 = true;
  TERCEL_SPECIAL_FWD(acos)
  template <class V> static V dx(V x) { return V(-1) / sqrt(V(1) - x * x); }
};
struct Atan {
  TERCEL_OP("atan", Float) TERCEL_TAKES_COMPLEX
  static constexpr bool kVectors32 = true, kVectors64 = true;
  TERCEL_SPECIAL_FWD(atan)
  template <class V> static V dx(V x) { return V(1) / (V(1) + x * x); }
};
struct Sinh {
  TERCEL_OP("sinh", Float) TERCEL_TAKES_COMPLEX
  TERCEL_SPECIAL_FWD(sinh)
  template <class V> static V dx(V x) { return cosh(x); }
};
struct Cosh {
  TERCEL_OP("cosh", Float) TERCEL_TAKES_COMPLEX
  TERCEL_SPECIAL_FWD(cosh)
  template <class V> static V dx(V x) { return sinh(x); }
};
struct Asinh {
  TERCEL_OP("asinh", Float) TERCEL_TAKES_COMPLEX
  TERCEL_SPECIAL_FWD(asinh)
  template <class V> static V dx(V x) { return V(1) / sqrt(x * x + V(1)); }
};
struct Acosh {
  TERCEL_OP("acosh", Float) TERCEL_TAKES_COMPLEX
  TERCEL_SPECIAL_FWD(acosh)
  template <class V> static V dx(V x) { return V(1) / (sqrt(x - V(1)) * sqrt(x + V(1))); }
};
struct Atanh {
  TERCEL_OP("atanh", Float) TERCEL_TAKES_COMPLEX
  static constexpr bool kVectors32 = true, kVectors64 = true;
  TERCEL_SPECIAL_FWD(atanh)
  template <class V> static V dx(V x) { return V(1) / (V(1) - x * x); }
};
struct Log2 {
  TERCEL_OP("log2", Float) TERCEL_TAKES_COMPLEX
  static constexpr bool kVectors32 = true, kVectors64 = true;
  TERCEL_SPECIAL_FWD(log2)
  template <class V> static V dx(V x) { return V(1.4426950408889634) / x; }
};
struct Log10 {
  TERCEL_OP("log10", Float) TERCEL_TAKES_COMPLEX
  static constexpr bool kVectors32 = true, kVectors64 = true;
  TERCEL_SPECIAL_FWD(log10)
  template <class V> static V dx(V x) { return V(0.4342944819032518) / x; }
};
struct Exp2 {
  TERCEL_OP("exp2", Float) TERCEL_TAKES_COMPLEX
  static constexpr bool kVectors32 = true, kVectors64 = true;
  TERCEL_SPECIAL_FWD(exp2)
  template <class V> static V dy(V y) { return V(0.6931471805599453) * y; }
};
struct Erfc {
  TERCEL_OP("erfc", Float)
  static constexpr bool kVectors32 = true, kVectors64 = true;
  TERCEL_SPECIAL_FWD(erfc)
  template <class V> static V dx(V x) { return V(-1.1283791670955126) * exp(-(x * x)); }  // -2 / sqrt(pi)
};
struct Erfinv {
  TERCEL_OP("erfinv", Float)
  static constexpr bool kVectors32 = true;
  TERCEL_SPECIAL_FWD(erfinv)
  template <class V> static V dy(V y) { return V(0.8862269254527580) * exp(y * y); }  // sqrt(pi) / 2
};
struct Lgamma {
  TERCEL_OP("lgamma", Float)
  static constexpr bool kVectors32 = true, kVectors64 = true;
  TERCEL_SPECIAL_FWD(lgamma)
  template <class V> static V dx(V x) { return digamma(x); }
};
struct Digamma {
  TERCEL_OP("digamma", Float)
  TERCEL_SPECIAL_FWD(digamma)
  template <class V> static V dx(V x) { return polygamma(V(1), x); }
};
struct I0 {
  TERCEL_OP("i0", Float)
  TERCEL_SPECIAL_FWD(i0)
  template <class V> static V dx(V x) { return i1(x); }
};
struct I0e {
  TERCEL_OP("i0e", Float)
  TERCEL_SPECIAL_FWD(i0e)
  template <class V> static V dx(V x) { return i1e(x) - sign(x) * i0e(x); }
};
struct I1 {
  TERCEL_OP("i1", Float)
  TERCEL_SPECIAL_FWD(i1)
  template <class V> static V dx(V x) { return where(x == V(0), V(0.5), i0(x) - i1(x) / where(x == V(0), V(1), x)); }
};
struct I1e {
  TERCEL_OP("i1e", Float)
  TERCEL_SPECIAL_FWD(i1e)
  template <class V> static V dx(V x) { return where(x == V(0), V(0.5), i0e(x) - i1e(x) * (sign(x) + V(1) / where(x == V(0), V(1), x))); }
};
struct Sinc {
  TERCEL_OP("sinc", Float) TERCEL_TAKES_COMPLEX
  TERCEL_SPECIAL_FWD(sinc)
  // At 0 the series, whose own derivative is correct there.
  template <class V> static V dx(V x) {
    const V quotient = (cos(V(3.141592653589793) * x) - sinc(x)) / where(x == V(0), V(1), x);
    return where(x == V(0), V(-3.289868133696453) * x, quotient);
  }
};
struct Ndtr {
  TERCEL_OP("special_ndtr", Float)
  TERCEL_SPECIAL_FWD(ndtr)
  template <class V> static V dx(V x) { return V(0.3989422804014327) * exp(V(-0.5) * (x * x)); }
};
struct Ndtri {
  TERCEL_OP("special_ndtri", Float)
  TERCEL_SPECIAL_FWD(ndtri)
  template <class V> static V dy(V y) { return V(2.5066282746310002) * exp(V(0.5) * (y * y)); }
};
struct LogNdtr {
  TERCEL_OP("special_log_ndtr", Float)
  TERCEL_SPECIAL_FWD(log_ndtr)
  template <class V> static V dx(V x) { return V(0.3989422804014327) * exp(V(-0.5) * (x * x) - special_log_ndtr(x)); }
};
struct Entr {
  TERCEL_OP("special_entr", Float)
  TERCEL_SPECIAL_FWD(entr)
  template <class V> static V dx(V x) { return -log(x) - V(1); }
};
struct BesselJ0 {
  TERCEL_OP("special_bessel_j0", Float)
  TERCEL_SPECIAL_FWD(special_bessel_j0)
  template <class V> static V dx(V x) { return -special_bessel_j1(x); }
};
struct BesselJ1 {
  TERCEL_OP("special_bessel_j1", Float)
  TERCEL_SPECIAL_FWD(special_bessel_j1)
  template <class V> static V dx(V x) { return where(x == V(0), V(0.5), special_bessel_j0(x) - special_bessel_j1(x) / where(x == V(0), V(1), x)); }
};
struct BesselY0 {
  TERCEL_OP("special_bessel_y0", Float)
  TERCEL_SPECIAL_FWD(special_bessel_y0)
  template <class V> static V dx(V x) { return -special_bessel_y1(x); }
};
struct BesselY1 {
  TERCEL_OP("special_bessel_y1", Float)
  TERCEL_SPECIAL_FWD(special_bessel_y1)
  template <class V> static V dx(V x) { return special_bessel_y0(x) - special_bessel_y1(x) / x; }
};
struct ModifiedBesselK0 {
  TERCEL_OP("special_modified_bessel_k0", Float)
  static constexpr const char* node_name = "SpecialModifiedBesselK0Backward0";
  TERCEL_SPECIAL_FWD(special_modified_bessel_k0)
  template <class V> static V dx(V x) { return -special_modified_bessel_k1(x); }
};
struct ModifiedBesselK1 {
  TERCEL_OP("special_modified_bessel_k1", Float)
  static constexpr const char* node_name = "SpecialModifiedBesselK1Backward0";
  TERCEL_SPECIAL_FWD(special_modified_bessel_k1)
  template <class V> static V dx(V x) { return -special_modified_bessel_k0(x) - special_modified_bessel_k1(x) / x; }
};
struct ScaledModifiedBesselK0 {
  TERCEL_OP("special_scaled_modified_bessel_k0", Float)
  static constexpr const char* node_name = "SpecialScaledModifiedBesselK0Backward0";
  TERCEL_SPECIAL_FWD(special_scaled_modified_bessel_k0)
  template <class V> static V dx(V x) { return special_scaled_modified_bessel_k0(x) - special_scaled_modified_bessel_k1(x); }
};
struct ScaledModifiedBesselK1 {
  TERCEL_OP("special_scaled_modified_bessel_k1", Float)
  static constexpr const char* node_name = "SpecialScaledModifiedBesselK1Backward0";
  TERCEL_SPECIAL_FWD(special_scaled_modified_bessel_k1)
  template <class V> static V dx(V x) { return (V(1) - V(1) / x) * special_scaled_modified_bessel_k1(x) - special_scaled_modified_bessel_k0(x); }
};
struct SphericalBesselJ0 {
  TERCEL_OP("special_spherical_bessel_j0", Float)
  static constexpr const char* node_name = "SpecialSphericalBesselJ0Backward0";
  TERCEL_SPECIAL_FWD(special_spherical_bessel_j0)
  template <class V> static V dx(V x) {
    const V quotient = (cos(x) - special_spherical_bessel_j0(x)) / where(x == V(0), V(1), x);
    return where(x == V(0), V(-0.3333333333333333) * x, quotient);
  }
};
struct AiryAi {
  TERCEL_OP("special_airy_ai", Float)
  TERCEL_SPECIAL_FWD(special_airy_ai)
};
struct Erfcx {
  TERCEL_OP("special_erfcx", Float)
  TERCEL_SPECIAL_FWD(special_erfcx)
  template <class V> static V dx(V x) { return V(2) * x * special_erfcx(x) - V(1.1283791670955126); }  // 2 / sqrt(pi)
};
#undef TERCEL_SPECIAL_FWD

// clang-format on

}  // namespace tercel::special::op

/** X(public function, functor) of special ops of one tensor. */
#define TERCEL_SPECIAL_UNARY_OPS(X)                            \
  X(tan, Tan)                                                  \
  X(asin, Asin)                                                \
  X(acos, Acos)                                                \
  X(atan, Atan)                                                \
  X(sinh, Sinh)                                                \
  X(cosh, Cosh)                                                \
  X(asinh, Asinh)                                              \
  X(acosh, Acosh)                                              \
  X(atanh, Atanh)                                              \
  X(log2, Log2)                                                \
  X(log10, Log10)                                              \
  X(exp2, Exp2)                                                \
  X(erfc, Erfc)                                                \
  X(erfinv, Erfinv)                                            \
  X(lgamma, Lgamma)                                            \
  X(digamma, Digamma)                                          \
  X(i0, I0)                                                    \
  X(i0e, I0e)                                                  \
  X(i1, I1)                                                    \
  X(i1e, I1e)                                                  \
  X(sinc, Sinc)                                                \
  X(special_ndtr, Ndtr)                                        \
  X(special_ndtri, Ndtri)                                      \
  X(special_log_ndtr, LogNdtr)                                 \
  X(special_entr, Entr)                                        \
  X(special_bessel_j0, BesselJ0)                               \
  X(special_bessel_j1, BesselJ1)                               \
  X(special_bessel_y0, BesselY0)                               \
  X(special_bessel_y1, BesselY1)                               \
  X(special_modified_bessel_k0, ModifiedBesselK0)              \
  X(special_modified_bessel_k1, ModifiedBesselK1)              \
  X(special_scaled_modified_bessel_k0, ScaledModifiedBesselK0) \
  X(special_scaled_modified_bessel_k1, ScaledModifiedBesselK1) \
  X(special_spherical_bessel_j0, SphericalBesselJ0)            \
  X(special_airy_ai, AiryAi)                                   \
  X(special_erfcx, Erfcx)

namespace tercel {

#define TERCEL_LIST_ENTRY(function, Functor) , special::op::Functor
using SpecialUnaryOps = OpListAfter<void TERCEL_SPECIAL_UNARY_OPS(TERCEL_LIST_ENTRY)>;
#undef TERCEL_LIST_ENTRY

}  // namespace tercel
