// Reductions as a list of functor types.
//
// Note [Reduction functors]
// map(x) converts an element x; combine(a, b) is associative and commutative except for rounding; identity() is its
// neutral element. Partial results are combined by `Merge`. Final operations (a root, a division) are elementwise ops.
// Reductions that compare elements do not support complex numbers. V is a vector, or Int<T>; see Note [Functors].
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

// The comparison of an element with itself lets NaN through.
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
  /** Whether a replaces b, which came before it. */
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

/** Sum of mapped elements. */
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
/** Sum of the elements that are not NaN. */
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
// Elements are mapped to 0 or 1.
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

/** All reductions by value; the position in the list is the op's index. */
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
/** Whether it compares elements. */
template <class Op>
constexpr bool is_ordering = requires {
  Op::ordering;
};
/** Reductions that also return an index. */
using ArgReduceOps = OpList<op::Max, op::Min>;

}  // namespace tercel
