#include "tercel/ops/elementwise/ternary.h"

#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/elementwise_impl.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/promotion_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/ternary_ops.h"
#include "tercel/ops/elementwise/unary.h"

namespace tercel {

namespace {

constinit const KernelTable<ElementwiseFn> ternary_kernels = TERCEL_KERNELS(ternary);

template <class F>
Tensor run(Span<OperandRef> inputs, uint8_t conditions = 0) {
  constexpr ElementwiseRule kRule{.op = F::name, .domain = F::domain, .complex = takes_complex<F>};
  ElementwiseRule rule = kRule;
  rule.conditions = conditions;
  return elementwise(rule, ternary_kernels, index_of<F, TernaryOps>, inputs);
}

template <class F>
void run_inplace(const Tensor& x, Span<OperandRef> inputs) {
  const ElementwiseRule rule{.op = F::name, .domain = F::domain, .complex = takes_complex<F>};
  elementwise_to(x, rule, ternary_kernels, index_of<F, TernaryOps>, inputs);
}

Tensor select(const Tensor& condition, OperandRef a, OperandRef b) {
  check_strided("where", condition, "condition");
  TERCEL_CHECK(condition.dtype() == kBool, RuntimeError,
               "where expected condition to be a boolean tensor, but got a tensor with dtype ",
               scalar_type_word(condition.dtype()));
  const OperandRef inputs[] = {condition, a, b};
  Tensor out = run<op::Where>(inputs, 1);
  if (!should_record(a, b) || !out.is_differentiable()) return out;
  // The operand that was not selected has gradient zero, even if the other's is infinite.
  if (a.tensor() && b.tensor()) {
    record("WhereBackward0", out, {*a.tensor(), *b.tensor()},
           [c = SavedTensor(condition), of_a = TensorMeta(*a.tensor()),
            of_b = TensorMeta(*b.tensor())](BackwardCall& call) {
             if (call.needs(0)) call.set(0, gradient_for(of_a, where(c.get(), call.grad(), 0)));
             if (call.needs(1)) call.set(1, gradient_for(of_b, where(c.get(), 0, call.grad())));
           });
  } else {
    const bool first = a.tensor() != nullptr;
    const Tensor& x = first ? *a.tensor() : *b.tensor();
    record("WhereBackward0", out, {x}, [c = SavedTensor(condition), meta = TensorMeta(x), first](BackwardCall& call) {
      call.set(0, gradient_for(meta, first ? where(c.get(), call.grad(), 0) : where(c.get(), 0, call.grad())));
    });
  }
  return out;
}

/** x + value * a * b, or a / b. */
template <class F>
auto addc_backward(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
  const bool of_a = is_tracked(a), of_b = is_tracked(b);
  return [value, meta_x = TensorMeta(x), meta_a = TensorMeta(a), meta_b = TensorMeta(b),
          saved_a = SavedTensor::when(of_b, a),
          saved_b = SavedTensor::when(of_a || (of_b && F::divides), b)](BackwardCall& call) {
    const Tensor& g = call.grad();
    if (call.needs(0)) call.set(0, gradient_for(meta_x, g));
    const Tensor scaled = mul(g, conjugate(value));
    if constexpr (F::divides) {
      if (call.needs(1)) call.set(1, gradient_for(meta_a, div(scaled, conj(saved_b.get()))));
      if (call.needs(2))
        call.set(2, gradient_for(meta_b, neg(div(mul(scaled, conj(saved_a.get())), conj(square(saved_b.get()))))));
    } else {
      if (call.needs(1)) call.set(1, gradient_for(meta_a, mul(scaled, conj(saved_b.get()))));
      if (call.needs(2)) call.set(2, gradient_for(meta_b, mul(scaled, conj(saved_a.get()))));
    }
  };
}

template <class F>
void check_addc(const Tensor& a, const Tensor& b) {
  check_strided(F::name, a, "tensor1");
  check_strided(F::name, b, "tensor2");
  if constexpr (F::divides)
    TERCEL_CHECK(a.is_differentiable() || b.is_differentiable(), RuntimeError,
                 "Integer division with addcdiv is no longer supported: divide by trunc(tensor1 / tensor2) or convert "
                 "one of the tensors to a floating dtype.");
}

/** Converts the number to the tensors' dtype without promotion: integers are multiplied by an integer. */
template <class F>
Scalar factor_of(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
  const OperandRef tensors[] = {x, a, b};
  const ElementwiseRule rule{.op = F::name, .domain = F::domain, .complex = takes_complex<F>};
  const ScalarType common = promote_operands(rule, tensors);
  check_number_fits(common, value);
  if (is_integral(common, true) && !value.is_integral()) return static_cast<int64_t>(value.to_double());
  return value.is_complex() && !is_complex(common) ? Scalar(value.to_complex().re) : value;
}

template <class F>
Tensor addc(const Tensor& x, const Tensor& a, const Tensor& b, Scalar number) {
  check_strided(F::name, x);
  check_addc<F>(a, b);
  const Scalar value = factor_of<F>(x, a, b, number);
  const OperandRef inputs[] = {x, a, b, value};
  Tensor out = run<F>(inputs);
  if (should_record(x, a, b) && out.is_differentiable())
    record(backward_name<F>, out, {x, a, b}, addc_backward<F>(x, a, b, value));
  return out;
}

template <class F>
const Tensor& addc_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar number) {
  check_strided(F::name, x);
  check_addc<F>(a, b);
  const Scalar value = factor_of<F>(x, a, b, number);
  const bool records = should_record(x, a, b) && x.is_differentiable();
  check_inplace(x, records);
  const OperandRef inputs[] = {x, a, b, value};
  run_inplace<F>(x, inputs);
  if (records) record_inplace(backward_name<F>, x, {x, a, b}, addc_backward<F>(x, a, b, value));
  return x;
}

auto lerp_backward(const Tensor& a, const Tensor& b, Scalar weight) {
  const Scalar conjugated = conjugate(weight);
  const Scalar rest =
      weight.is_complex() ? Scalar(Complex<double>(1) - conjugated.to_complex()) : Scalar(1 - weight.to_double());
  return [weight = conjugated, rest, of_a = TensorMeta(a), of_b = TensorMeta(b)](BackwardCall& call) {
    if (call.needs(0)) call.set(0, gradient_for(of_a, mul(call.grad(), rest)));
    if (call.needs(1)) call.set(1, gradient_for(of_b, mul(call.grad(), weight)));
  };
}

/** Throws for integers, which would wrap; floating numbers become infinity. */
void check_integer_fits(const Tensor& out, Scalar number) {
  if (!out.is_differentiable()) check_number_fits(out.dtype(), number);
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) { return select(condition, a, b); }
Tensor where(const Tensor& condition, const Tensor& a, Scalar b) {
  Tensor out = select(condition, a, b);
  check_integer_fits(out, b);
  return out;
}
Tensor where(const Tensor& condition, Scalar a, const Tensor& b) {
  Tensor out = select(condition, a, b);
  check_integer_fits(out, a);
  return out;
}

namespace {

void check_lerp(const Tensor& a, const Tensor& b, const Tensor* weight) {
  check_strided("lerp", a);
  check_strided("lerp", b, "end");
  TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, "lerp: expected dtype ", cpp_type_name(a.dtype()),
               " for `end` but got dtype ", cpp_type_name(b.dtype()));
  if (!weight) return;
  check_strided("lerp", *weight, "weight");
  // A 0-dimensional weight is treated as a number.
  TERCEL_CHECK(a.dtype() == weight->dtype() || weight->dim() == 0, RuntimeError, "lerp: expected dtype ",
               cpp_type_name(a.dtype()), " for `weight` but got dtype ", cpp_type_name(weight->dtype()));
}

}  // namespace

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  check_lerp(a, b, &weight);
  const OperandRef inputs[] = {a, b, weight};
  Tensor out = run<op::Lerp>(inputs);
  if (should_record(a, b, weight)) {
    const bool of_weight = is_tracked(weight);
    record("LerpBackward0", out, {a, b, weight},
           [w = SavedTensor::when(is_tracked(a) || is_tracked(b), weight), saved_a = SavedTensor::when(of_weight, a),
            saved_b = SavedTensor::when(of_weight, b), of_a = TensorMeta(a), of_b = TensorMeta(b),
            of_w = TensorMeta(weight)](BackwardCall& call) {
             const Tensor& g = call.grad();
             if (call.needs(0)) call.set(0, gradient_for(of_a, mul(g, conj(sub(1, w.get())))));
             if (call.needs(1)) call.set(1, gradient_for(of_b, mul(g, conj(w.get()))));
             if (call.needs(2)) call.set(2, gradient_for(of_w, mul(g, conj(sub(saved_b.get(), saved_a.get())))));
           });
  }
  return out;
}

Tensor lerp(const Tensor& a, const Tensor& b, Scalar weight) {
  check_lerp(a, b, nullptr);
  const OperandRef inputs[] = {a, b, weight};
  Tensor out = run<op::Lerp>(inputs);
  if (should_record(a, b)) record("LerpBackward0", out, {a, b}, lerp_backward(a, b, weight));
  return out;
}

const Tensor& lerp_(const Tensor& a, const Tensor& b, Scalar weight) {
  check_lerp(a, b, nullptr);
  const bool records = should_record(a, b);
  check_inplace(a, records);
  const OperandRef inputs[] = {a, b, weight};
  run_inplace<op::Lerp>(a, inputs);
  if (records) record_inplace("LerpBackward0", a, {a, b}, lerp_backward(a, b, weight));
  return a;
}

Tensor addcmul(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Scalar value) {
  return addc<op::Addcmul>(x, tensor1, tensor2, value);
}
const Tensor& addcmul_(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Scalar value) {
  return addc_<op::Addcmul>(x, tensor1, tensor2, value);
}
Tensor addcdiv(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Scalar value) {
  return addc<op::Addcdiv>(x, tensor1, tensor2, value);
}
const Tensor& addcdiv_(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, Scalar value) {
  return addc_<op::Addcdiv>(x, tensor1, tensor2, value);
}

}  // namespace tercel
