// Elementwise ops of three tensors, or of two and a number. See Note [Functors]; gradients are in ternary.cpp.
#pragma once

#include "tercel/ops/common/op_list_impl.h"
#include "tercel/util/complex.h"

namespace tercel::op {

// One line per member, so that the ops read as a table.
// clang-format off

/** a + alpha * b. */
struct AddScaled {
  TERCEL_OP("add", Any) TERCEL_TAKES_COMPLEX
  template <class V> static TERCEL_HD V fwd(V a, V b, V alpha) { return a + alpha * b; }
};
struct Where {
  TERCEL_OP("where", Any) TERCEL_TAKES_COMPLEX
  template <class V> static TERCEL_HD V fwd(V condition, V a, V b) { return where(condition != V(0), a, b); }
};
struct Lerp {
  TERCEL_OP("lerp", Float) TERCEL_TAKES_COMPLEX
  // Computed from the nearer end, so that both ends are exact.
  template <class V> static TERCEL_HD V fwd(V a, V b, V weight) {
    return where(is_below_half(weight), a + weight * (b - a), b - (b - a) * (V(1) - weight));
  }
  template <class V> static TERCEL_HD auto is_below_half(V weight) {
    if constexpr (is_complex_number<V>)
      return magnitude(weight) < decltype(weight.re)(0.5);
    else
      return weight < V(0.5);
  }
};
struct Addcmul {
  TERCEL_OP("addcmul", Number) TERCEL_TAKES_COMPLEX
  static constexpr bool divides = false;
  template <class V> static TERCEL_HD V fwd(V x, V a, V b, V value) { return x + value * (a * b); }
};
struct Addcdiv {
  TERCEL_OP("addcdiv", Float) TERCEL_TAKES_COMPLEX
  static constexpr bool divides = true;
  template <class V> static TERCEL_HD V fwd(V x, V a, V b, V value) { return x + value * (a / b); }
};

// clang-format on

}  // namespace tercel::op

namespace tercel {

using TernaryOps = OpList<op::AddScaled, op::Where, op::Lerp, op::Addcmul, op::Addcdiv>;

}  // namespace tercel
