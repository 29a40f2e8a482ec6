// Reductions as functor types in a list.
//
// Note [Reduction functors]
// An element x enters as map(x); combine(a, b) is associative and commutative but for rounding; identity() is an
// element that changes nothing. Parts that were combined are combined further by `Merge`. What is done to the final
// value (a root, a division) is an elementwise op. Those that have an order in them are not for complex numbers. V is a
// vector, or Int<T>; see Note [Functors].
#pragma once

#include <limits>

#include "tercel/ops/common/op_list_impl.h"

namespace tercel::op {

struct Sum {
  using Merge = Sum;
  static constexpr bool complex = true;
  template <class T>
  static constexpr T identity() {
    return T(0);
  }
  template <class V>
  static TERCEL_HD V map(V x) {
    return x;
  }
  template <class V>
  static TERCEL_HD V combine(V a, V b) {
    return a + b;
  }
};
struct Prod {
  using Merge = Prod;
  static constexpr bool complex = true;
  template <class T>
  static constexpr T identity() {
    return T(1);
  }
  template <class V>
  static TERCEL_HD V map(V x) {
    return x;
  }
  template <class V>
  static TERCEL_HD V combine(V a, V b) {
    return a * b;
  }
};

namespace detail {
template <class T>
constexpr T lowest() {
  return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}
template <class T>
constexpr T highest() {
  return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
}
}  // namespace detail

// The comparison with itself lets NaN through.
struct Max {
  using Merge = Max;
  static constexpr bool ordering = true;
  template <class T>
  static constexpr T identity() {
    return detail::lowest<T>();
  }
  template <class V>
  static TERCEL_HD V map(V x) {
    return x;
  }
  template <class V>
  static TERCEL_HD V combine(V a, V b) {
    return where((a > b) | (a != a), a, b);
  }
  /** Whether a takes the place of b, which came before it. */
  template <class V>
  static TERCEL_HD auto better(V a, V b) {
    return (a > b) | ((a != a) & (b == b));
  }
};
struct Min {
  using Merge = Min;
  static constexpr bool ordering = true;
  template <class T>
  static constexpr T identity() {
    return detail::highest<T>();
  }
  template <class V>
  static TERCEL_HD V map(V x) {
    return x;
  }
  template <class V>
  static TERCEL_HD V combine(V a, V b) {
    return where((a < b) | (a != a), a, b);
  }
  template <class V>
  static TERCEL_HD auto better(V a, V b) {
    return (a < b) | ((a != a) & (b == b));
  }
};

/** Sum of what is made of the elements. */
struct SumOf {
  using Merge = Sum;
  static constexpr bool floating_only = true;
  template <class T>
  static constexpr T identity() {
    return T(0);
  }
  template <class V>
  static TERCEL_HD V combine(V a, V b) {
    return a + b;
  }
};
struct AbsSum : SumOf {
  template <class V>
  static TERCEL_HD V map(V x) {
    return abs(x);
  }
};
/** Sum of what is not NaN. */
struct NanSum : SumOf {
  template <class V>
  static TERCEL_HD V map(V x) {
    return where(x == x, x, V(0));
  }
};
struct SquareSum : SumOf {
  template <class V>
  static TERCEL_HD V map(V x) {
    return x * x;
  }
};
struct AbsMax {
  using Merge = Max;
  static constexpr bool floating_only = true;
  template <class T>
  static constexpr T identity() {
    return T(0);
  }
  template <class V>
  static TERCEL_HD V map(V x) {
    return abs(x);
  }
  template <class V>
  static TERCEL_HD V combine(V a, V b) {
    return Max::combine(a, b);
  }
};
// Elements become 0 or 1.
struct Any {
  using Merge = Max;
  template <class T>
  static constexpr T identity() {
    return T(0);
  }
  template <class V>
  static TERCEL_HD V map(V x) {
    return where(x != V(0), V(1), V(0));
  }
  template <class V>
  static TERCEL_HD V combine(V a, V b) {
    return where(a > b, a, b);
  }
};
struct All {
  using Merge = Min;
  template <class T>
  static constexpr T identity() {
    return T(1);
  }
  template <class V>
  static TERCEL_HD V map(V x) {
    return where(x != V(0), V(1), V(0));
  }
  template <class V>
  static TERCEL_HD V combine(V a, V b) {
    return where(a < b, a, b);
  }
};

}  // namespace tercel::op

namespace tercel {

/** Every reduction by value; the position in the list is its number. */
using ReduceOps =
    OpList<op::Sum, op::Prod, op::Max, op::Min, op::AbsSum, op::SquareSum, op::AbsMax, op::Any, op::All, op::NanSum>;
template <class Op>
constexpr bool takes_complex_elements = requires {
  Op::complex;
};
template <class Op>
constexpr bool is_floating_only = requires {
  Op::floating_only;
};
/** Whether it compares elements with one another. */
template <class Op>
constexpr bool is_ordering = requires {
  Op::ordering;
};
/** Those that also say where. */
using ArgReduceOps = OpList<op::Max, op::Min>;

}  // namespace tercel
