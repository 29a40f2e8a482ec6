// Evaluation of functors on tensors, which records the derivatives of elementwise ops.
//
// Note [Recorded derivatives]
// An elementwise family computes its gradient with one fused kernel. If backward is recorded, and for ops without such
// a kernel, the functor's dx, dy, da or db is instantiated with an expression type instead of a vector: its operators
// and functions are then tensor ops, each of which is recorded. This needs no code besides the functor. Functors may
// test at compile time whether V is complex, so there are a real and a complex expression type.
#pragma once

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/binary_ops.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/elementwise/unary_ops.h"
#include "tercel/ops/special/special.h"
#include "tercel/ops/special/special_binary_ops.h"
#include "tercel/ops/special/special_unary_ops.h"

namespace tercel {

/** A tensor, or a number that combines with any tensor; bool for comparisons. */
struct ExpressionValue {
  Tensor tensor;
  Scalar number = 0.0;

  bool is_number() const { return !tensor.defined(); }
};

namespace detail {
using UnaryFunction = Tensor(const Tensor& x);
struct BinaryFunction {
  Tensor (*tensors)(const Tensor& a, const Tensor& b);
  Tensor (*number_right)(const Tensor& a, Scalar b);
  Tensor (*number_left)(Scalar a, const Tensor& b);
};
ExpressionValue evaluate(UnaryFunction* function, const ExpressionValue& x);
ExpressionValue evaluate(const BinaryFunction& function, const ExpressionValue& a, const ExpressionValue& b);
ExpressionValue evaluate_where(const ExpressionValue& condition, const ExpressionValue& a, const ExpressionValue& b);
ExpressionValue evaluate_polygamma(const ExpressionValue& n, const ExpressionValue& x);
Tensor sign_of_complex(const Tensor& x);
Tensor conjugate_of(const Tensor& x);
}  // namespace detail

template <bool kComplex>
class BasicExpression : public ExpressionValue {
 public:
  /** A constant: V(0). */
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit BasicExpression(T constant) : ExpressionValue{{}, static_cast<double>(constant)} {}
  explicit BasicExpression(ExpressionValue value) : ExpressionValue(std::move(value)) {}
};
using Expression = BasicExpression<false>;
using ComplexExpression = BasicExpression<true>;
template <>
inline constexpr bool is_complex_number<ComplexExpression> = true;

template <bool C>
BasicExpression<C> where(const BasicExpression<C>& condition, const BasicExpression<C>& a,
                         const BasicExpression<C>& b) {
  return BasicExpression<C>(detail::evaluate_where(condition, a, b));
}

#define TERCEL_EXPRESSION_OF_ONE(name, function)                                                    \
  template <bool C>                                                                                 \
  BasicExpression<C> name(const BasicExpression<C>& x) {                                            \
    return BasicExpression<C>(detail::evaluate(static_cast<detail::UnaryFunction*>(&function), x)); \
  }
#define TERCEL_EXPRESSION_OF_TWO(name, function)                                                                \
  template <bool C>                                                                                             \
  BasicExpression<C> name(const BasicExpression<C>& a, const BasicExpression<C>& b) {                           \
    return BasicExpression<C>(detail::evaluate(detail::BinaryFunction{&function, &function, &function}, a, b)); \
  }
#define TERCEL_EXPRESSION_UNARY(function, F) TERCEL_EXPRESSION_OF_ONE(function, tercel::function)
#define TERCEL_EXPRESSION_BINARY(function, F) TERCEL_EXPRESSION_OF_TWO(function, tercel::function)
TERCEL_UNARY_OPS(TERCEL_EXPRESSION_UNARY)
TERCEL_UNARY_PREDICATES(TERCEL_EXPRESSION_UNARY)
TERCEL_BINARY_OPS(TERCEL_EXPRESSION_BINARY)
TERCEL_COMPARE_OPS(TERCEL_EXPRESSION_BINARY)
TERCEL_SPECIAL_UNARY_OPS(TERCEL_EXPRESSION_UNARY)
TERCEL_SPECIAL_BINARY_OPS(TERCEL_EXPRESSION_BINARY)
TERCEL_EXPRESSION_OF_ONE(sgn, detail::sign_of_complex)
TERCEL_EXPRESSION_OF_ONE(conj, detail::conjugate_of)
TERCEL_EXPRESSION_OF_ONE(operator-, tercel::neg)
TERCEL_EXPRESSION_OF_TWO(operator+, tercel::add)
TERCEL_EXPRESSION_OF_TWO(operator-, tercel::sub)
TERCEL_EXPRESSION_OF_TWO(operator*, tercel::mul)
TERCEL_EXPRESSION_OF_TWO(operator/, tercel::div)
TERCEL_EXPRESSION_OF_TWO(operator==, tercel::eq)
TERCEL_EXPRESSION_OF_TWO(operator!=, tercel::ne)
TERCEL_EXPRESSION_OF_TWO(operator<, tercel::lt)
TERCEL_EXPRESSION_OF_TWO(operator<=, tercel::le)
TERCEL_EXPRESSION_OF_TWO(operator>, tercel::gt)
TERCEL_EXPRESSION_OF_TWO(operator>=, tercel::ge)
TERCEL_EXPRESSION_OF_TWO(operator&, tercel::logical_and)
TERCEL_EXPRESSION_OF_TWO(operator|, tercel::logical_or)
TERCEL_EXPRESSION_OF_TWO(operator^, tercel::logical_xor)
template <bool C>
BasicExpression<C> polygamma(const BasicExpression<C>& n, const BasicExpression<C>& x) {
  return BasicExpression<C>(detail::evaluate_polygamma(n, x));
}
#undef TERCEL_EXPRESSION_UNARY
#undef TERCEL_EXPRESSION_BINARY
#undef TERCEL_EXPRESSION_OF_ONE
#undef TERCEL_EXPRESSION_OF_TWO

/** Gradient of a unary op, from that of its output, the saved tensor and the parameters. */
using UnaryGradientFn = Tensor(const Tensor& g, const Tensor& saved, Span<Scalar> parameters);
/** The same for an operand of a binary op; operands that the derivative does not use may be any number. */
using BinaryGradientFn = Tensor(const Tensor& g, const ExpressionValue& a, const ExpressionValue& b);

/** Converts an operand to the compute dtype of g. */
ExpressionValue operand_of_gradient(const ExpressionValue& operand, const Tensor& g);
/** g times the conjugated derivative; `selects` as in Note [Functors]. */
Tensor times_derivative(const Tensor& g, const ExpressionValue& derivative, bool selects);

namespace detail {

template <class F, class V>
Tensor unary_gradient_in(const Tensor& g, const Tensor& saved, Span<Scalar> p) {
  const auto derivative = [&](auto... parameters) {
    if constexpr (has_no_grad<F>)
      return V(0);
    else if constexpr (has_constant_dx<F>)
      return F::template dx<V>();
    else if constexpr (has_dy<F>)
      return F::dy(V(operand_of_gradient({saved}, g)), parameters...);
    else
      return F::dx(V(operand_of_gradient({saved}, g)), parameters...);
  };
  const auto parameter = [&](size_t i) { return V(ExpressionValue{{}, p[i]}); };
  if constexpr (num_inputs<F> == 3)
    return times_derivative(g, derivative(parameter(0), parameter(1)), selects_elements<F>);
  else if constexpr (num_inputs<F> == 2)
    return times_derivative(g, derivative(parameter(0)), selects_elements<F>);
  else
    return times_derivative(g, derivative(), selects_elements<F>);
}

template <class F, int kSide, class V>
V binary_derivative(const V& a, const V& b) {
  if constexpr (has_no_grad<F>)
    return V(0);
  else if constexpr (kSide == 0 && has_constant_da<F>)
    return F::template da<V>();
  else if constexpr (kSide == 1 && has_constant_db<F>)
    return F::template db<V>();
  else if constexpr (kSide == 0)
    return F::da(a, b);
  else
    return F::db(a, b);
}

template <class F, int kSide, class V>
Tensor binary_gradient_in(const Tensor& g, const ExpressionValue& a, const ExpressionValue& b) {
  const V derivative = binary_derivative<F, kSide>(V(operand_of_gradient(a, g)), V(operand_of_gradient(b, g)));
  return times_derivative(g, derivative, selects_elements<F>);
}

inline bool is_complex(const ExpressionValue& x) {
  return x.is_number() ? x.number.is_complex() : x.tensor.is_complex();
}

}  // namespace detail

/** Gradient of a unary op's input, composed of ops; see Note [Recorded derivatives]. */
template <class F>
Tensor unary_gradient(const Tensor& g, const Tensor& saved, Span<Scalar> p) {
  if constexpr (takes_complex<F>)
    if (g.is_complex() || saved.is_complex()) return detail::unary_gradient_in<F, ComplexExpression>(g, saved, p);
  return detail::unary_gradient_in<F, Expression>(g, saved, p);
}

/** Gradient of a binary op's first or second operand, composed of ops. */
template <class F, int kSide>
Tensor binary_gradient(const Tensor& g, const ExpressionValue& a, const ExpressionValue& b) {
  if constexpr (takes_complex<F>)
    if (g.is_complex() || detail::is_complex(a) || detail::is_complex(b))
      return detail::binary_gradient_in<F, kSide, ComplexExpression>(g, a, b);
  return detail::binary_gradient_in<F, kSide, Expression>(g, a, b);
}

}  // namespace tercel
