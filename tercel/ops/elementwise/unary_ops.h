// Elementwise ops of one tensor, some with numbers as parameters. See Note [Functors].
#pragma once

#include "tercel/ops/common/op_list_impl.h"
#include "tercel/util/complex.h"

/** Marks an op whose vector code is long: kernels then contain it once, also for the last few elements. */
#define TERCEL_LONG_CODE static constexpr bool kLongCode = true;
namespace tercel::op {

// One line per member, so that the ops read as a table.
// clang-format off

struct Abs {
  TERCEL_OP("abs", Any) TERCEL_TAKES_COMPLEX
  static constexpr bool real = true;
  template <class V> static TERCEL_HD V fwd(V x) { return abs(x); }
  template <class V> static TERCEL_HD V dx(V x) {
    if constexpr (is_complex_number<V>)
      return conj(sgn(x));
    else
      return where(x > V(0), V(1), where(x < V(0), V(-1), V(0)));
  }
};
struct Neg {
  TERCEL_OP("neg", Number) TERCEL_TAKES_COMPLEX
  template <class V> static TERCEL_HD V fwd(V x) { return -x; }
  template <class V> static TERCEL_HD V dx() { return V(-1); }
};
struct Exp {
  TERCEL_OP("exp", Float) TERCEL_TAKES_COMPLEX TERCEL_LONG_CODE
  template <class V> static TERCEL_HD V fwd(V x) { return exp(x); }
  template <class V> static TERCEL_HD V dy(V y) { return y; }
};
struct Expm1 {
  TERCEL_OP("expm1", Float) TERCEL_TAKES_COMPLEX TERCEL_LONG_CODE
  template <class V> static TERCEL_HD V fwd(V x) { return expm1(x); }
  template <class V> static TERCEL_HD V dy(V y) { return y + V(1); }
};
struct Log {
  TERCEL_OP("log", Float) TERCEL_TAKES_COMPLEX TERCEL_LONG_CODE
  template <class V> static TERCEL_HD V fwd(V x) { return log(x); }
  template <class V> static TERCEL_HD V dx(V x) { return V(1) / x; }
};
struct Log1p {
  TERCEL_OP("log1p", Float) TERCEL_TAKES_COMPLEX TERCEL_LONG_CODE
  template <class V> static TERCEL_HD V fwd(V x) { return log1p(x); }
  template <class V> static TERCEL_HD V dx(V x) { return V(1) / (V(1) + x); }
};
struct Sqrt {
  TERCEL_OP("sqrt", Float) TERCEL_TAKES_COMPLEX
  template <class V> static TERCEL_HD V fwd(V x) { return sqrt(x); }
  template <class V> static TERCEL_HD V dy(V y) { return V(0.5) / y; }
};
struct Rsqrt {
  TERCEL_OP("rsqrt", Float) TERCEL_TAKES_COMPLEX
  template <class V> static TERCEL_HD V fwd(V x) { return V(1) / sqrt(x); }
  template <class V> static TERCEL_HD V dy(V y) { return V(-0.5) * y * y * y; }
};
struct Reciprocal {
  TERCEL_OP("reciprocal", Float) TERCEL_TAKES_COMPLEX
  template <class V> static TERCEL_HD V fwd(V x) { return V(1) / x; }
  template <class V> static TERCEL_HD V dy(V y) { return -y * y; }
};
struct Square {
  TERCEL_OP("square", Number) TERCEL_TAKES_COMPLEX
  static constexpr const char* node_name = "PowBackward0";  // as PyTorch records it
  static Tensor composite(const Tensor& x);
  template <class V> static TERCEL_HD V fwd(V x) { return x * x; }
  template <class V> static TERCEL_HD V dx(V x) { return x + x; }
};
struct Sin {
  TERCEL_OP("sin", Float) TERCEL_TAKES_COMPLEX TERCEL_LONG_CODE
  template <class V> static TERCEL_HD V fwd(V x) { return sin(x); }
  template <class V> static TERCEL_HD V dx(V x) { return cos(x); }
};
struct Cos {
  TERCEL_OP("cos", Float) TERCEL_TAKES_COMPLEX TERCEL_LONG_CODE
  template <class V> static TERCEL_HD V fwd(V x) { return cos(x); }
  template <class V> static TERCEL_HD V dx(V x) { return -sin(x); }
};
struct Tanh {
  TERCEL_OP("tanh", Float) TERCEL_TAKES_COMPLEX TERCEL_LONG_CODE
  template <class V> static TERCEL_HD V fwd(V x) { return tanh(x); }
  template <class V> static TERCEL_HD V dy(V y) { return V(1) - y * y; }
};
struct Sigmoid {
  TERCEL_OP("sigmoid", Float) TERCEL_TAKES_COMPLEX TERCEL_LONG_CODE
  template <class V> static TERCEL_HD V fwd(V x) { return V(1) / (V(1) + exp(-x)); }
  template <class V> static TERCEL_HD V dy(V y) { return y * (V(1) - y); }
};
struct Relu {
  TERCEL_OP("relu", Number) TERCEL_SELECTS
  template <class V> static TERCEL_HD V fwd(V x) { return where(x < V(0), V(0), x); }
  template <class V> static TERCEL_HD V dy(V y) { return where(y <= V(0), V(0), V(1)); }
};
struct Erf {
  TERCEL_OP("erf", Float) TERCEL_LONG_CODE
  template <class V> static TERCEL_HD V fwd(V x) { return erf(x); }
  template <class V> static TERCEL_HD V dx(V x) { return V(1.1283791670955126) * exp(-x * x); }  // 2 / sqrt(pi)
};
struct Gelu {
  TERCEL_OP("gelu", Float) TERCEL_LONG_CODE
  // x times the normal distribution function.
  template <class V> static TERCEL_HD V fwd(V x) { return V(0.5) * x * (V(1) + erf(x * V(0.7071067811865476))); }
  template <class V> static TERCEL_HD V dx(V x) {
    const V density = V(0.3989422804014327) * exp(V(-0.5) * x * x);
    return V(0.5) * (V(1) + erf(x * V(0.7071067811865476))) + x * density;
  }
};
struct GeluTanh {
  TERCEL_OP("gelu", Float) TERCEL_LONG_CODE
  // With tanh(sqrt(2 / pi) (x + 0.044715 x^3)) in place of erf(x / sqrt(2)).
  template <class V> static TERCEL_HD V fwd(V x) {
    return V(0.5) * x * (V(1) + tanh(V(0.7978845608028654) * (x * (x * x * V(0.044715) + V(1)))));
  }
  template <class V> static TERCEL_HD V dx(V x) {
    const V t = tanh(V(0.7978845608028654) * (x * (x * x * V(0.044715) + V(1))));
    const V slope = V(0.7978845608028654) * (x * x * V(0.134145) + V(1));
    return V(0.5) * ((V(1) + t) + x * (V(1) - t * t) * slope);
  }
};
struct Silu {
  TERCEL_OP("silu", Float) TERCEL_TAKES_COMPLEX TERCEL_LONG_CODE
  template <class V> static TERCEL_HD V fwd(V x) { return x / (V(1) + exp(-x)); }
  template <class V> static TERCEL_HD V dx(V x) {
    const V s = sigmoid_of(x);
    return s * (V(1) + x * (V(1) - s));
  }
};
struct Softsign {
  TERCEL_OP("softsign", Float)
  static Tensor composite(const Tensor& x);
  template <class V> static TERCEL_HD V fwd(V x) { return x / (V(1) + abs(x)); }
  template <class V> static TERCEL_HD V dx(V x) {
    const V r = V(1) / (V(1) + abs(x));
    return r * r;
  }
};
struct Sign {
  TERCEL_OP("sign", Any)
  template <class V> static TERCEL_HD V fwd(V x) { return where(x > V(0), V(1), where(x < V(0), V(-1), V(0))); }
  static constexpr bool no_grad = true;
};
struct Floor {
  TERCEL_OP("floor", Number)
  template <class V> static TERCEL_HD V fwd(V x) { return floor(x); }
  static constexpr bool no_grad = true;
};
struct Ceil {
  TERCEL_OP("ceil", Number)
  template <class V> static TERCEL_HD V fwd(V x) { return ceil(x); }
  static constexpr bool no_grad = true;
};
struct Round {
  TERCEL_OP("round", Number)
  template <class V> static TERCEL_HD V fwd(V x) { return round(x); }
  static constexpr bool no_grad = true;
};
struct Trunc {
  TERCEL_OP("trunc", Number)
  template <class V> static TERCEL_HD V fwd(V x) { return trunc(x); }
  static constexpr bool no_grad = true;
};
struct Frac {
  TERCEL_OP("frac", Number)
  template <class V> static TERCEL_HD V fwd(V x) { return x - trunc(x); }
  template <class V> static TERCEL_HD V dx() { return V(1); }
};
struct IsNan {
  TERCEL_OP("isnan", Any) TERCEL_TAKES_COMPLEX
  static constexpr bool predicate = true, no_grad = true;
  template <class V> static TERCEL_HD Truth<V> fwd(V x) { return isnan(x); }
};
struct IsFinite {
  TERCEL_OP("isfinite", Any) TERCEL_TAKES_COMPLEX
  static constexpr bool predicate = true, no_grad = true;
  template <class V> static TERCEL_HD Truth<V> fwd(V x) { return isfinite(x); }
};
struct LogicalNot {
  TERCEL_OP("logical_not", Any) TERCEL_TAKES_COMPLEX
  static constexpr bool predicate = true, no_grad = true;
  template <class V> static TERCEL_HD Truth<V> fwd(V x) { return x == V(0); }
};

// Complex numbers; the front ends are in complex.cpp.
struct Conj {
  TERCEL_OP("conj", Complex)
  static constexpr bool no_grad = true;
  template <class V> static TERCEL_HD V fwd(V x) { return conj(x); }
};

struct LeakyRelu {
  TERCEL_OP("leaky_relu", Float)
  template <class V> static TERCEL_HD V fwd(V x, V slope) { return where(x > V(0), x, x * slope); }
  template <class V> static TERCEL_HD V dx(V x, V slope) { return where(x > V(0), V(1), slope); }
};
struct Elu {
  TERCEL_OP("elu", Float) TERCEL_LONG_CODE
  template <class V> static TERCEL_HD V fwd(V x, V below, V above) { return where(x > V(0), x * above, expm1(x) * below); }
  template <class V> static TERCEL_HD V dx(V x, V below, V above) { return where(x <= V(0), exp(where(x < V(0), x, V(0))) * below, above); }
};
struct Softplus {
  TERCEL_OP("softplus", Float) TERCEL_LONG_CODE
  template <class V> static TERCEL_HD V fwd(V x, V beta, V threshold) {
    return where(x * beta > threshold, x, log1p(exp(x * beta)) / beta);
  }
  template <class V> static TERCEL_HD V dx(V x, V beta, V threshold) {
    return where(x * beta > threshold, V(1), sigmoid_of(x * beta));
  }
};
struct Clamp {
  TERCEL_OP("clamp", Number) TERCEL_SELECTS
  template <class V> static TERCEL_HD V fwd(V x, V low, V high) { return minimum(maximum(x, low), high); }
  template <class V> static TERCEL_HD V dx(V x, V low, V high) {
    return where(x > low, where(x < high, V(1), V(0)), V(0));
  }
};
struct ClampMin {
  TERCEL_OP("clamp_min", Number) TERCEL_SELECTS
  template <class V> static TERCEL_HD V fwd(V x, V low) { return maximum(x, low); }
  template <class V> static TERCEL_HD V dx(V x, V low) { return where(x > low, V(1), V(0)); }
};
struct ClampMax {
  TERCEL_OP("clamp_max", Number) TERCEL_SELECTS
  template <class V> static TERCEL_HD V fwd(V x, V high) { return minimum(x, high); }
  template <class V> static TERCEL_HD V dx(V x, V high) { return where(x < high, V(1), V(0)); }
};
struct Hardswish {
  TERCEL_OP("hardswish", Float) TERCEL_SELECTS
  template <class V> static TERCEL_HD V fwd(V x) { return x * minimum(maximum(x + V(3), V(0)), V(6)) / V(6); }
  template <class V> static TERCEL_HD V dx(V x) {
    return where(x <= V(-3), V(0), where(x < V(3), x / V(3) + V(0.5), V(1)));
  }
};
/** Replaces infinities by -largest and largest, and NaN by `nan`. */
struct NanToNum {
  TERCEL_OP("nan_to_num", Float)
  template <class V> static TERCEL_HD V fwd(V x, V nan, V largest) {
    return where(isnan(x), nan, minimum(maximum(x, -largest), largest));
  }
  template <class V> static TERCEL_HD V dx(V x, V, V largest) { return where(abs(x) <= largest, V(1), V(0)); }
};
/** Half the square of x where |x| is less than a limit, linear beyond, times a scale; loss.cpp has its gradient. */
struct LinearBeyond {
  TERCEL_OP("smooth_l1_loss", Float)
  template <class V> static TERCEL_HD V fwd(V x, V limit, V scale) {
    const V size = abs(x);
    return where(size < limit, size * size * (V(0.5) * scale), (size - V(0.5) * limit) * (limit * scale));
  }
  static constexpr bool no_grad = true;
};

// clang-format on

}  // namespace tercel::op

/** The family, X(public function, functor): ops of one tensor without parameters, ... */
#define TERCEL_UNARY_OPS(X) \
  X(abs, Abs)               \
  X(neg, Neg)               \
  X(exp, Exp)               \
  X(expm1, Expm1)           \
  X(log, Log)               \
  X(log1p, Log1p)           \
  X(sqrt, Sqrt)             \
  X(rsqrt, Rsqrt)           \
  X(reciprocal, Reciprocal) \
  X(square, Square)         \
  X(sin, Sin)               \
  X(cos, Cos)               \
  X(tanh, Tanh)             \
  X(sigmoid, Sigmoid)       \
  X(relu, Relu)             \
  X(erf, Erf)               \
  X(gelu, Gelu)             \
  X(silu, Silu)             \
  X(softsign, Softsign)     \
  X(sign, Sign)             \
  X(floor, Floor)           \
  X(ceil, Ceil)             \
  X(round, Round)           \
  X(trunc, Trunc)           \
  X(frac, Frac)

/** ... predicates, whose result is bool, ... */
#define TERCEL_UNARY_PREDICATES(X) \
  X(isnan, IsNan)                  \
  X(isfinite, IsFinite)            \
  X(logical_not, LogicalNot)

/** ... ops of complex numbers, whose public functions are written out in complex.cpp, ... */
#define TERCEL_UNARY_COMPLEX_OPS(X) X(conj, Conj)

/** ... and ops with parameters or alternatives, whose public functions are written out in unary.cpp. */
#define TERCEL_UNARY_PARAMETER_OPS(X) \
  X(leaky_relu, LeakyRelu)            \
  X(gelu, GeluTanh)                   \
  X(elu, Elu)                         \
  X(softplus, Softplus)               \
  X(clamp, Clamp)                     \
  X(clamp_min, ClampMin)              \
  X(clamp_max, ClampMax)              \
  X(hardswish, Hardswish)             \
  X(nan_to_num, NanToNum)             \
  X(smooth_l1_loss, LinearBeyond)

namespace tercel {

#define TERCEL_LIST_ENTRY(function, Functor) , op::Functor
using UnaryOps = OpListAfter<void TERCEL_UNARY_OPS(TERCEL_LIST_ENTRY) TERCEL_UNARY_PREDICATES(
    TERCEL_LIST_ENTRY) TERCEL_UNARY_COMPLEX_OPS(TERCEL_LIST_ENTRY) TERCEL_UNARY_PARAMETER_OPS(TERCEL_LIST_ENTRY)>;
#undef TERCEL_LIST_ENTRY
static_assert(check_unary_ops(UnaryOps{}));

}  // namespace tercel
