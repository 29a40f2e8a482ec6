#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/tensor_expression_impl.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/factories/factories.h"

namespace tercel {

namespace {

/** A number as a 0-dimensional tensor, of float32 (or complex64) if that represents it exactly. */
Tensor as_tensor(Scalar number) {
  const auto fits = [](double x) { return static_cast<double>(static_cast<float>(x)) == x || x != x; };
  if (!number.is_complex()) return full({}, number, fits(number.to_double()) ? kFloat32 : kFloat64);
  const Complex<double> z = number.to_complex();
  return full({}, number, fits(z.re) && fits(z.im) ? kComplex64 : kComplex128);
}

Tensor at_full_width(Scalar number) { return full({}, number, number.is_complex() ? kComplex128 : kFloat64); }

Tensor as_tensor(const ExpressionValue& x) { return x.is_number() ? as_tensor(x.number) : x.tensor; }

}  // namespace

namespace detail {

ExpressionValue evaluate(UnaryFunction* function, const ExpressionValue& x) {
  if (x.is_number()) return {{}, function(at_full_width(x.number)).item()};
  return {function(x.tensor)};
}

ExpressionValue evaluate(const BinaryFunction& function, const ExpressionValue& a, const ExpressionValue& b) {
  if (a.is_number() && b.is_number())
    return {{}, function.tensors(at_full_width(a.number), at_full_width(b.number)).item()};
  if (a.is_number()) return {function.number_left(a.number, b.tensor)};
  if (b.is_number()) return {function.number_right(a.tensor, b.number)};
  return {function.tensors(a.tensor, b.tensor)};
}

ExpressionValue evaluate_where(const ExpressionValue& condition, const ExpressionValue& a, const ExpressionValue& b) {
  if (condition.is_number()) return condition.number.to_bool() ? a : b;
  if (b.is_number()) return {where(condition.tensor, as_tensor(a), b.number)};
  if (a.is_number()) return {where(condition.tensor, a.number, b.tensor)};
  return {where(condition.tensor, a.tensor, b.tensor)};
}

ExpressionValue evaluate_polygamma(const ExpressionValue& n, const ExpressionValue& x) {
  return {tercel::polygamma(static_cast<int64_t>(n.number.to_double()), x.tensor)};
}

Tensor sign_of_complex(const Tensor& x) {
  const Tensor size = abs(x);
  const Tensor zero = eq(size, 0);
  return where(zero, 0, div(x, where(zero, 1, size)));
}

Tensor conjugate_of(const Tensor& x) { return conj(x); }

}  // namespace detail

ExpressionValue operand_of_gradient(const ExpressionValue& operand, const Tensor& g) {
  if (operand.is_number()) return operand;
  return {to(operand.tensor, operand.tensor.is_complex() ? complex_dtype(g.dtype()) : g.dtype())};
}

Tensor times_derivative(const Tensor& g, const ExpressionValue& derivative, bool selects) {
  if (!derivative.is_number()) {
    if (selects) return where(eq(derivative.tensor, 0), 0, mul(g, derivative.tensor));
    const ScalarType dtype = derivative.tensor.is_complex() ? complex_dtype(g.dtype()) : g.dtype();
    return to(mul(g, conj(derivative.tensor)), dtype);
  }
  if (equals(derivative.number, 1)) return g;
  // A zero derivative gives zero even if the gradient is infinite.
  if (equals(derivative.number, 0)) return zeros_like(g);
  return mul(g, derivative.number.is_complex() ? Scalar(conj(derivative.number.to_complex())) : derivative.number);
}

}  // namespace tercel
