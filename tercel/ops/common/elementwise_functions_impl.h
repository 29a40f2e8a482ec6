// Function objects that kernels run on every device, made from functors.
#pragma once

#include <type_traits>

#include "tercel/ops/common/op_list_impl.h"
#include "tercel/util/complex.h"
#include "tercel/util/macros.h"

namespace tercel {

namespace detail {
/** The output's gradient g times the conjugated derivative, as in PyTorch; see Note [Functors] for selecting ops. */
template <class Op, class V>
TERCEL_HD V chain(V g, V derivative) {
  if constexpr (is_complex_number<V>)
    return g * conj(derivative);
  else if constexpr (selects_elements<Op> && std::is_floating_point_v<V>)
    // On a GPU, which has no where() of numbers.
    return derivative == V(0) ? V(0) : g * derivative;
  else if constexpr (selects_elements<Op>)
    return where(derivative == V(0), V(0), g * derivative);
  else
    return g * derivative;
}
}  // namespace detail

template <class Op>
constexpr bool has_long_code = requires {
  Op::kLongCode;
};

/** The definition of an op. */
template <class Op>
struct Forward {
  static constexpr bool kLong = has_long_code<Op>;

  template <class... V>
  TERCEL_HD auto operator()(V... v) const {
    return Op::fwd(v...);
  }
};

/** Gradient of a unary op: (gradient of the output, saved tensor, parameters) -> gradient of the input. */
template <class Op>
struct UnaryBackward {
  static constexpr int kInputs = has_no_grad<Op> || has_constant_dx<Op> ? 1 : 1 + num_inputs<Op>;
  static constexpr bool kLong = has_long_code<Op> && has_dx<Op>;

  template <class V, class... Rest>
  TERCEL_HD V operator()(V g, Rest... saved) const {
    if constexpr (has_no_grad<Op>)
      return V(0);
    else if constexpr (has_constant_dx<Op>)
      return detail::chain<Op>(g, Op::template dx<V>());
    else if constexpr (has_dy<Op>)
      return detail::chain<Op>(g, Op::dy(saved...));
    else
      return detail::chain<Op>(g, Op::dx(saved...));
  }
};
/** The number of these operands. */
constexpr int count_uses(Uses uses) { return uses == Uses::None ? 0 : (uses == Uses::Both ? 2 : 1); }

/** Gradient of a binary op: (gradient of the output, operands that the derivative uses) -> gradient of a. */
template <class Op>
struct BackwardA {
  static constexpr int kInputs = 1 + count_uses(uses_of_da<Op>());
  static constexpr bool kLong = false;

  template <class V>
  TERCEL_HD V operator()(V g) const {
    return detail::chain<Op>(g, Op::template da<V>());
  }
  template <class V>
  TERCEL_HD V operator()(V g, V used) const {
    return detail::chain<Op>(g, Op::da(used, used));
  }
  template <class V>
  TERCEL_HD V operator()(V g, V a, V b) const {
    return detail::chain<Op>(g, Op::da(a, b));
  }
};

/** The same for b. */
template <class Op>
struct BackwardB {
  static constexpr int kInputs = 1 + count_uses(uses_of_db<Op>());
  static constexpr bool kLong = false;

  template <class V>
  TERCEL_HD V operator()(V g) const {
    return detail::chain<Op>(g, Op::template db<V>());
  }
  template <class V>
  TERCEL_HD V operator()(V g, V used) const {
    return detail::chain<Op>(g, Op::db(used, used));
  }
  template <class V>
  TERCEL_HD V operator()(V g, V a, V b) const {
    return detail::chain<Op>(g, Op::db(a, b));
  }
};

}  // namespace tercel
