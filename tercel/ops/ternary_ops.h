// Elementwise ops of three tensors, or of two and a number. See Note [Functors]; ternary.cpp writes their gradients.
#pragma once

#include "tercel/ops/op_list.h"

namespace tercel::op {

// One line for each member, so that the ops read as a table.
// clang-format off

/** a + alpha * b. */
struct AddScaled {
  TERCEL_OP("add", Any)
  template <class V> static TERCEL_HD V fwd(V a, V b, V alpha) { return a + alpha * b; }
};
struct Where {
  TERCEL_OP("where", Any)
  template <class V> static TERCEL_HD V fwd(V condition, V a, V b) { return where(condition != V(0), a, b); }
};
struct Lerp {
  TERCEL_OP("lerp", Float)
  // From the nearer end, so that both ends are met exactly.
  template <class V> static TERCEL_HD V fwd(V a, V b, V weight) {
    return where(weight < V(0.5), a + weight * (b - a), b - (b - a) * (V(1) - weight));
  }
};
struct Addcmul {
  TERCEL_OP("addcmul", Number)
  template <class V> static TERCEL_HD V fwd(V x, V a, V b, V value) { return x + value * (a * b); }
};
struct Addcdiv {
  TERCEL_OP("addcdiv", Float)
  template <class V> static TERCEL_HD V fwd(V x, V a, V b, V value) { return x + value * (a / b); }
};

// clang-format on

}  // namespace tercel::op

namespace tercel {

using TernaryOps = OpList<op::AddScaled, op::Where, op::Lerp, op::Addcmul, op::Addcdiv>;

}  // namespace tercel
