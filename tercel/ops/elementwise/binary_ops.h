// Elementwise ops of two tensors, including comparisons. See Note [Functors].
//
// da_uses and db_uses say which operands a partial derivative uses; only these are saved for backward. The default is
// both. A constant derivative takes no arguments. TERCEL_NUMBER_HAS_EDGE: a number as the second operand has an
// undefined edge, as in PyTorch's graphs.
#pragma once

#include "tercel/ops/common/op_list_impl.h"
#include "tercel/util/complex.h"

#define TERCEL_NUMBER_HAS_EDGE static constexpr bool number_has_edge = true;

namespace tercel::op {

// One line per member, so that the ops read as a table.
// clang-format off

struct Add {
  TERCEL_OP("add", Any) TERCEL_TAKES_COMPLEX TERCEL_NUMBER_HAS_EDGE
  template <class V> static TERCEL_HD V fwd(V a, V b) { return a + b; }
  template <class V> static constexpr TERCEL_HD V da() { return V(1); }
  template <class V> static constexpr TERCEL_HD V db() { return V(1); }
};
struct Sub {
  TERCEL_OP("sub", Number) TERCEL_TAKES_COMPLEX TERCEL_NUMBER_HAS_EDGE TERCEL_CHECKS_OPERANDS
  template <class V> static TERCEL_HD V fwd(V a, V b) { return a - b; }
  template <class V> static constexpr TERCEL_HD V da() { return V(1); }
  template <class V> static constexpr TERCEL_HD V db() { return V(-1); }
};
struct Mul {
  TERCEL_OP("mul", Any) TERCEL_TAKES_COMPLEX TERCEL_NUMBER_HAS_EDGE
  static constexpr Uses da_uses = Uses::B, db_uses = Uses::A;
  template <class V> static TERCEL_HD V fwd(V a, V b) { return a * b; }
  template <class V> static TERCEL_HD V da(V, V b) { return b; }
  template <class V> static TERCEL_HD V db(V a, V) { return a; }
};
struct Div {
  TERCEL_OP("div", Float) TERCEL_TAKES_COMPLEX TERCEL_NUMBER_HAS_EDGE
  static constexpr Uses da_uses = Uses::B;
  template <class V> static TERCEL_HD V fwd(V a, V b) { return a / b; }
  template <class V> static TERCEL_HD V da(V, V b) { return V(1) / b; }
  template <class V> static TERCEL_HD V db(V a, V b) { return -a / (b * b); }
};
struct Pow {
  TERCEL_OP("pow", Number) TERCEL_TAKES_COMPLEX TERCEL_CHECKS_OPERANDS
  /** Another op's result for common exponents, whose kernels are many times as fast; undefined for others. */
  static Tensor with_number(const Tensor& a, Scalar b);
  template <class V> static TERCEL_HD V fwd(V a, V b) { return pow(a, b); }
  template <class V> static TERCEL_HD V da(V a, V b) { return where(b == V(0), V(0), b * pow(a, b - V(1))); }
  template <class V> static TERCEL_HD V db(V a, V b) {
    if constexpr (is_complex_number<V>)
      return where(a == V(0), V(0), pow(a, b) * log(a));
    else
      return where(a == V(0), where(b >= V(0), V(0), pow(a, b) * log(a)), pow(a, b) * log(a));
  }
};
struct Maximum {
  TERCEL_OP("maximum", Any) TERCEL_SELECTS
  template <class V> static TERCEL_HD V fwd(V a, V b) { return maximum(a, b); }
  template <class V> static TERCEL_HD V da(V a, V b) { return where(a < b, V(0), where(a == b, V(0.5), V(1))); }
  template <class V> static TERCEL_HD V db(V a, V b) { return where(b < a, V(0), where(a == b, V(0.5), V(1))); }
};
struct Minimum {
  TERCEL_OP("minimum", Any) TERCEL_SELECTS
  template <class V> static TERCEL_HD V fwd(V a, V b) { return minimum(a, b); }
  template <class V> static TERCEL_HD V da(V a, V b) { return where(a > b, V(0), where(a == b, V(0.5), V(1))); }
  template <class V> static TERCEL_HD V db(V a, V b) { return where(b > a, V(0), where(a == b, V(0.5), V(1))); }
};
struct Atan2 {
  TERCEL_OP("atan2", Float)
  template <class V> static TERCEL_HD V fwd(V a, V b) { return atan2(a, b); }
  // 0 at (0, 0), where no derivative exists.
  template <class V> static TERCEL_HD V square_or_1(V a, V b) { return where((a == V(0)) & (b == V(0)), V(1), a * a + b * b); }
  template <class V> static TERCEL_HD V da(V a, V b) { return b / square_or_1(a, b); }
  template <class V> static TERCEL_HD V db(V a, V b) { return -a / square_or_1(a, b); }
};
struct Hypot {
  TERCEL_OP("hypot", Float)
  template <class V> static TERCEL_HD V fwd(V a, V b) { return hypot(a, b); }
  template <class V> static TERCEL_HD V da(V a, V b) { return a / hypot(a, b); }
  template <class V> static TERCEL_HD V db(V a, V b) { return b / hypot(a, b); }
};
struct Logaddexp {
  TERCEL_OP("logaddexp", Float)
  static Tensor composite(const Tensor& a, const Tensor& b);
  // Equal operands first: infinities of one sign have no difference.
  template <class V> static TERCEL_HD V fwd(V a, V b) {
    return where(a == b, a + V(0.6931471805599453), maximum(a, b) + log1p(exp(-abs(a - b))));
  }
  template <class V> static TERCEL_HD V da(V a, V b) { return sigmoid_of(where((a == b) & (a - a != V(0)), V(0), a - b)); }
  template <class V> static TERCEL_HD V db(V a, V b) { return sigmoid_of(where((a == b) & (a - a != V(0)), V(0), b - a)); }
};
struct Fmod {
  TERCEL_OP("fmod", Number) TERCEL_CHECKS_OPERANDS
  template <class V> static TERCEL_HD V fwd(V a, V b) { return fmod(a, b); }
  template <class V> static constexpr TERCEL_HD V da() { return V(1); }
  template <class V> static TERCEL_HD V db(V a, V b) { return -trunc(a / b); }
};
struct Remainder {
  TERCEL_OP("remainder", Number) TERCEL_CHECKS_OPERANDS
  template <class V> static TERCEL_HD V fwd(V a, V b) { return remainder(a, b); }
  template <class V> static constexpr TERCEL_HD V da() { return V(1); }
  template <class V> static TERCEL_HD V db(V a, V b) { return -floor_divide(a, b); }
};
struct FloorDivide {
  TERCEL_OP("floor_divide", Number) TERCEL_CHECKS_OPERANDS
  template <class V> static TERCEL_HD V fwd(V a, V b) { return floor_divide(a, b); }
  static constexpr bool no_grad = true;
};
struct BitwiseAnd {
  TERCEL_OP("bitwise_and", Integral)
  static constexpr bool no_grad = true;
  template <class V> static TERCEL_HD V fwd(V a, V b) { return a & b; }
};
struct BitwiseOr {
  TERCEL_OP("bitwise_or", Integral)
  static constexpr bool no_grad = true;
  template <class V> static TERCEL_HD V fwd(V a, V b) { return a | b; }
};
struct BitwiseXor {
  TERCEL_OP("bitwise_xor", Integral)
  static constexpr bool no_grad = true;
  template <class V> static TERCEL_HD V fwd(V a, V b) { return a ^ b; }
};

// Complex numbers from two real ones; the front ends are in complex.cpp.
struct MakeComplex {
  TERCEL_OP("complex", Complex)
  static constexpr bool no_grad = true;
  template <class V> static TERCEL_HD V fwd(V a, V b) { return V(a.re, b.re); }
};
struct Polar {
  TERCEL_OP("polar", Complex)
  static constexpr bool no_grad = true;
  template <class V> static TERCEL_HD V fwd(V a, V b) {
    return V(static_cast<decltype(a.re)>(a.re * std::cos(b.re)), static_cast<decltype(a.re)>(a.re * std::sin(b.re)));
  }
};

struct Eq {
  TERCEL_OP("eq", Any) TERCEL_TAKES_COMPLEX
  static constexpr bool predicate = true, no_grad = true;
  template <class V> static TERCEL_HD Truth<V> fwd(V a, V b) { return a == b; }
};
struct Ne {
  TERCEL_OP("ne", Any) TERCEL_TAKES_COMPLEX
  static constexpr bool predicate = true, no_grad = true;
  template <class V> static TERCEL_HD Truth<V> fwd(V a, V b) { return a != b; }
};
struct Lt {
  TERCEL_OP("lt", Any)
  static constexpr bool predicate = true, no_grad = true;
  template <class V> static TERCEL_HD Truth<V> fwd(V a, V b) { return a < b; }
};
struct Le {
  TERCEL_OP("le", Any)
  static constexpr bool predicate = true, no_grad = true;
  template <class V> static TERCEL_HD Truth<V> fwd(V a, V b) { return a <= b; }
};
struct Gt {
  TERCEL_OP("gt", Any)
  static constexpr bool predicate = true, no_grad = true;
  template <class V> static TERCEL_HD Truth<V> fwd(V a, V b) { return a > b; }
};
struct Ge {
  TERCEL_OP("ge", Any)
  static constexpr bool predicate = true, no_grad = true;
  template <class V> static TERCEL_HD Truth<V> fwd(V a, V b) { return a >= b; }
};
struct LogicalAnd {
  TERCEL_OP("logical_and", Any) TERCEL_TAKES_COMPLEX
  static constexpr bool predicate = true, no_grad = true;
  template <class V> static TERCEL_HD Truth<V> fwd(V a, V b) { return (a != V(0)) & (b != V(0)); }
};
struct LogicalOr {
  TERCEL_OP("logical_or", Any) TERCEL_TAKES_COMPLEX
  static constexpr bool predicate = true, no_grad = true;
  template <class V> static TERCEL_HD Truth<V> fwd(V a, V b) { return (a != V(0)) | (b != V(0)); }
};
struct LogicalXor {
  TERCEL_OP("logical_xor", Any) TERCEL_TAKES_COMPLEX
  static constexpr bool predicate = true, no_grad = true;
  template <class V> static TERCEL_HD Truth<V> fwd(V a, V b) { return (a != V(0)) ^ (b != V(0)); }
};

// clang-format on

}  // namespace tercel::op

/** The families: X(public function, functor). */
#define TERCEL_BINARY_OPS(X)   \
  X(add, Add)                  \
  X(sub, Sub)                  \
  X(mul, Mul)                  \
  X(div, Div)                  \
  X(pow, Pow)                  \
  X(maximum, Maximum)          \
  X(minimum, Minimum)          \
  X(atan2, Atan2)              \
  X(hypot, Hypot)              \
  X(logaddexp, Logaddexp)      \
  X(fmod, Fmod)                \
  X(remainder, Remainder)      \
  X(floor_divide, FloorDivide) \
  X(bitwise_and, BitwiseAnd)   \
  X(bitwise_or, BitwiseOr)     \
  X(bitwise_xor, BitwiseXor)

#define TERCEL_BINARY_COMPLEX_OPS(X) \
  X(complex, MakeComplex)            \
  X(polar, Polar)

#define TERCEL_COMPARE_OPS(X) \
  X(eq, Eq)                   \
  X(ne, Ne)                   \
  X(lt, Lt)                   \
  X(le, Le)                   \
  X(gt, Gt)                   \
  X(ge, Ge)                   \
  X(logical_and, LogicalAnd)  \
  X(logical_or, LogicalOr)    \
  X(logical_xor, LogicalXor)

namespace tercel {

#define TERCEL_LIST_ENTRY(function, Functor) , op::Functor
using BinaryOps = OpListAfter<void TERCEL_BINARY_OPS(TERCEL_LIST_ENTRY) TERCEL_BINARY_COMPLEX_OPS(TERCEL_LIST_ENTRY)>;
using CompareOps = OpListAfter<void TERCEL_COMPARE_OPS(TERCEL_LIST_ENTRY)>;
#undef TERCEL_LIST_ENTRY
static_assert(check_binary_ops(BinaryOps{}) && check_binary_ops(CompareOps{}));

}  // namespace tercel
