// Elementwise ops as functor types in lists.
//
// Note [Functors]
// An elementwise op is a type without state. fwd() is its definition, for any V that behaves as a number: a vector in
// CPU kernels, float or double on a GPU, Int<T> for integers. Calls in it are unqualified and find V's own functions.
// Conditions are values: where(c, a, b), never ?: or if. Parameters (a slope, bounds) are further operands.
// An op that supports complex numbers declares it; backward multiplies by the conjugate of its complex derivative.
//
// An op of one tensor declares exactly one of
//   dx(V x, params...)   dy/dx from the input,
//   dy(V y, params...)   dy/dx from the output,
//   dx()                 dy/dx when it is a constant,
//   no_grad              the derivative is zero wherever it exists;
// one of two tensors both da(V a, V b) and db(V a, V b), each without arguments when it is a constant, or no_grad.
// A selecting op (relu, clamp) declares it: where its derivative is 0, the gradient is 0 even if that of the output is
// infinite or NaN, as in PyTorch. Otherwise sqrt(relu(x)) would have NaN gradients below 0. A predicate, whose
// result is bool, returns a Truth<V>.
//
// What distinguishes an op from its family is a member too, which the family's front end (unary.cpp, binary.cpp ...)
// looks for. Functions of tensors are only declared in the functor; the front end defines them.
//   node_name            the name of backward, where it does not follow from that of the op
//   check(a, b)          TERCEL_CHECKS_OPERANDS: refuses operands of a binary op, before anything is written
//   composite(...)       the op made of others, for a dtype that fwd() does not support: complex numbers, or bool where
//                        it supports those
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "tercel/ops/common/elementwise_loop_impl.h"
#include "tercel/util/macros.h"

namespace tercel {

class OperandRef;
class Scalar;
class Tensor;

/** The dtypes that an op accepts and computes in. */
enum class Domain : uint8_t {
  Any,       ///< all
  Number,    ///< all but bool
  Float,     ///< integers and bool become float32
  Integral,  ///< integers and bool only
  Complex,   ///< complex only: floating numbers become complex
};

/** Operands that a partial derivative of a binary op needs, as bits. */
enum class Uses : uint8_t { None = 0, A = 1, B = 2, Both = 3 };

/** The result type of comparisons of V. */
template <class V>
using Truth = decltype(std::declval<V>() == std::declval<V>());

/** Begins a functor: its public name and dtypes; complex ones only with TERCEL_TAKES_COMPLEX after it.
 */
#define TERCEL_OP(op_name, op_domain)          \
  static constexpr const char* name = op_name; \
  static constexpr ::tercel::Domain domain = ::tercel::Domain::op_domain;

#define TERCEL_TAKES_COMPLEX static constexpr bool complex = true;
#define TERCEL_SELECTS static constexpr bool selects = true;
#define TERCEL_CHECKS_OPERANDS static void check(const OperandRef& a, const OperandRef& b);

template <class... Ops>
struct OpList {
  static constexpr int size = static_cast<int>(sizeof...(Ops));
};
/** For lists written by a macro, with a comma before each entry. */
template <class Nothing, class... Ops>
using OpListAfter = OpList<Ops...>;

namespace detail {

template <class Op, class List>
struct IndexOf;
template <class Op, class... Ops>
struct IndexOf<Op, OpList<Ops...>> {
  static constexpr int value = [] {
    int at = 0;
    static_cast<void>(((std::is_same_v<Op, Ops> || (++at, false)) || ...));
    return at;
  }();
  static_assert(value < static_cast<int>(sizeof...(Ops)), "the op is in no list");
};

// Whether F has the member, called with numbers; only declarations are looked at.
template <class F, class... V>
concept HasFwd = requires(V... v) {
  F::fwd(v...);
};
template <class F, class... V>
concept HasDx = requires(V... v) {
  F::dx(v...);
};
template <class F, class... V>
concept HasDy = requires(V... v) {
  F::dy(v...);
};

}  // namespace detail

/** Position of an op in its family. */
template <class Op, class List>
constexpr int index_of = detail::IndexOf<Op, List>::value;

template <class F>
constexpr bool has_no_grad = requires {
  F::no_grad;
};
template <class F>
constexpr bool is_predicate = requires {
  F::predicate;
};
/** Whether a derivative of 0 gives gradient 0 for every incoming gradient. */
template <class F>
constexpr bool selects_elements = requires {
  F::selects;
};
/** Whether the op is defined for complex numbers. */
template <class F>
constexpr bool takes_complex = F::domain == Domain::Complex || requires {
  F::complex;
};
/** Whether its result for complex operands is real: fwd() returns an imaginary part of zero. */
template <class F>
constexpr bool is_real_valued = requires {
  F::real;
};
template <class F>
constexpr bool checks_operands = requires {
  &F::check;
};
template <class F>
constexpr bool has_composite = requires {
  &F::composite;
};
template <class F>
constexpr bool has_constant_dx = requires {
  F::template dx<float>();
};
template <class F>
constexpr bool has_dx =
    detail::HasDx<F, float> || detail::HasDx<F, float, float> || detail::HasDx<F, float, float, float>;
template <class F>
constexpr bool has_dy =
    detail::HasDy<F, float> || detail::HasDy<F, float, float> || detail::HasDy<F, float, float, float>;
template <class F>
constexpr bool has_constant_da = requires {
  F::template da<float>();
};
template <class F>
constexpr bool has_constant_db = requires {
  F::template db<float>();
};
template <class F>
constexpr bool has_da = has_constant_da<F> || requires(float v) {
  F::da(v, v);
};
template <class F>
constexpr bool has_db = has_constant_db<F> || requires(float v) {
  F::db(v, v);
};
/** Operands that the derivatives use. */
template <class F>
constexpr Uses uses_of_da() {
  if constexpr (has_constant_da<F>)
    return Uses::None;
  else if constexpr (requires { F::da_uses; })
    return F::da_uses;
  else
    return Uses::Both;
}
template <class F>
constexpr Uses uses_of_db() {
  if constexpr (has_constant_db<F>)
    return Uses::None;
  else if constexpr (requires { F::db_uses; })
    return F::db_uses;
  else
    return Uses::Both;
}

namespace detail {

template <class F>
constexpr int count_inputs() {
  if constexpr (HasFwd<F, float>) {
    return 1;
  } else if constexpr (HasFwd<F, float, float>) {
    return 2;
  } else if constexpr (HasFwd<F, float, float, float>) {
    return 3;
  } else {
    return HasFwd<F, float, float, float, float> ? 4 : 0;
  }
}

template <class F>
constexpr auto make_backward_name() {
  std::array<char, 32> out{};
  size_t n = 0;
  bool upper = true;
  for (const char* c = F::name; *c != '\0'; ++c) {
    if (*c == '_') {
      upper = true;
      continue;
    }
    out[n++] = upper && *c >= 'a' && *c <= 'z' ? static_cast<char>(*c - 'a' + 'A') : *c;
    upper = false;
  }
  for (const char c : {'B', 'a', 'c', 'k', 'w', 'a', 'r', 'd', '0'}) out[n++] = c;
  return out;
}
template <class F>
constexpr std::array<char, 32> kBackwardName = make_backward_name<F>();
template <class F>
constexpr const char* find_backward_name() {
  if constexpr (requires { F::node_name; })
    return F::node_name;
  else
    return kBackwardName<F>.data();
}

template <class F>
constexpr bool check_unary_op() {
  static_assert(static_cast<int>(has_dx<F> || has_constant_dx<F>) + static_cast<int>(has_dy<F>) +
                        static_cast<int>(has_no_grad<F>) ==
                    1,
                "declare exactly one of dx, dy, no_grad");
  return true;
}
template <class F>
constexpr bool check_binary_op() {
  static_assert(has_da<F> == has_db<F>, "declare da and db, or neither");
  static_assert(has_da<F> != has_no_grad<F>, "declare da and db, or no_grad");
  return true;
}

}  // namespace detail

/** "leaky_relu" as "LeakyReluBackward0", or node_name. */
template <class F>
constexpr const char* backward_name = detail::find_backward_name<F>();

/** Number of arguments of fwd(). */
template <class F>
constexpr int num_inputs = detail::count_inputs<F>();

/** Checks a list against Note [Functors]. */
template <class... Ops>
constexpr bool check_unary_ops(OpList<Ops...>) {
  return (detail::check_unary_op<Ops>() && ...);
}
template <class... Ops>
constexpr bool check_binary_ops(OpList<Ops...>) {
  return (detail::check_binary_op<Ops>() && ...);
}

namespace op {

/** 1 / (1 + exp(-x)); for expressions (see Note [Recorded derivatives]) the op, whose derivative stays finite. */
template <class V>
TERCEL_HD V sigmoid_of(V x) {
  if constexpr (requires { sigmoid(x); })
    return sigmoid(x);
  else
    return V(1) / (V(1) + exp(-x));
}

}  // namespace op

}  // namespace tercel
