#include "tercel/ops/special/special.h"

#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/assign_inplace_impl.h"
#include "tercel/ops/common/elementwise_impl.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/common/tensor_expression_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/special/special_binary_ops.h"
#include "tercel/ops/special/special_kernels.h"
#include "tercel/ops/special/special_unary_ops.h"

namespace tercel {

namespace {

constinit const KernelTable<ElementwiseFn> special_kernels = TERCEL_CPU_KERNELS(special_elementwise);

struct Info {
  ElementwiseRule rule;
  const char* backward;
  int op;
  bool binary;
  bool no_grad;
  bool saves_output = false;
  bool has_gradient[2] = {true, true};
  /** The gradients composed of ops: see Note [Recorded derivatives]. */
  UnaryGradientFn* recorded_unary = nullptr;
  BinaryGradientFn* recorded_binary[2] = {nullptr, nullptr};

  constexpr int number(SpecialPart part) const { return special_number(binary, op, part); }
};

template <class F>
constexpr ElementwiseRule rule_of() {
  return {.op = F::name, .domain = F::domain, .complex = takes_complex<F>};
}
template <class F>
constexpr bool is_gradient_error = requires {
  F::gradient_is_error;
};
template <class F>
constexpr bool has_output_gradient = detail::HasDy<F, double>;
template <class F>
concept HasGradientA = requires(double v) {
  F::da(v, v);
};
template <class F>
concept HasGradientB = requires(double v) {
  F::db(v, v);
};

template <class F>
constexpr UnaryGradientFn* recorded_gradient() {
  if constexpr (has_dx<F> || has_dy<F>)
    return &unary_gradient<F>;
  else
    return nullptr;
}

template <class F>
constexpr Info kUnaryInfo = {
    rule_of<F>(), backward_name<F>,       index_of<F, SpecialUnaryOps>,   false,
    false,        has_output_gradient<F>, {has_dx<F> || has_dy<F>, true}, recorded_gradient<F>()};

template <class F, int kSide>
constexpr BinaryGradientFn* recorded_gradient() {
  if constexpr (has_no_grad<F> || !(kSide == 0 ? HasGradientA<F> : HasGradientB<F>))
    return nullptr;
  else
    return &binary_gradient<F, kSide>;
}

template <class F>
constexpr Info kBinaryInfo = {rule_of<F>(),
                              backward_name<F>,
                              index_of<F, SpecialBinaryOps>,
                              true,
                              has_no_grad<F> && !is_gradient_error<F>,
                              false,
                              {HasGradientA<F>, HasGradientB<F>},
                              nullptr,
                              {recorded_gradient<F, 0>(), recorded_gradient<F, 1>()}};

void check_gradient(const Info& info, int side) {
  TERCEL_CHECK(info.has_gradient[side], NotImplementedError, "the derivative for '", side == 0 ? "self" : "other",
               "' of '", info.rule.op, "' is not implemented");
}

struct UnaryBackward {
  const Info* info;
  SavedTensor saved;

  void operator()(BackwardCall& call) const {
    check_gradient(*info, 0);
    const ElementwiseRule rule{.op = info->backward, .complex = true};
    const Tensor kept = saved.get(call);
    if (should_record(call.grad(), kept)) return call.set(0, info->recorded_unary(call.grad(), kept, {}));
    const OperandRef inputs[] = {call.grad(), kept};
    call.set(0, elementwise(rule, special_kernels, info->number(SpecialPart::GradientA), inputs));
  }
};

Tensor unary(const Info& info, const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_map_values(info.rule.op, x, [&](const Tensor& values) { return unary(info, values); });
  const OperandRef inputs[] = {x};
  Tensor out = elementwise(info.rule, special_kernels, info.number(SpecialPart::Forward), inputs);
  if (should_record(x))
    record(info.backward, out, {x},
           UnaryBackward{&info, info.saves_output ? SavedTensor::output(out) : SavedTensor(x)});
  return out;
}

const Tensor& unary_inplace(const Info& info, const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_map_values_(info.rule.op, x, [&](const Tensor& values) { return unary(info, values); });
  check_strided(info.rule.op, x);
  const bool records = should_record(x);
  check_inplace(x, records);
  SavedTensor saved;
  if (records && !info.saves_output) saved = save_before_change(x);
  const OperandRef inputs[] = {x};
  elementwise_to(x, info.rule, special_kernels, info.number(SpecialPart::Forward), inputs);
  if (records) {
    if (info.saves_output) saved = SavedTensor::output(x);
    record_inplace(info.backward, x, {x}, UnaryBackward{&info, std::move(saved)});
  }
  return x;
}

const Tensor& special_out(const Info& info, const Tensor& out, Span<OperandRef> inputs) {
  const int forward = info.number(SpecialPart::Forward);
  if (!takes_result(info.rule.op, out, inputs))
    return put_out(info.rule.op, out, elementwise(info.rule, special_kernels, forward, inputs));
  elementwise_to(out, info.rule, special_kernels, forward, inputs);
  return out;
}

using Pair = OperandRef[2];

/** Gradients of both operands of a binary op; numbers have none. */
struct BinaryBackward {
  const Info* info;
  SavedOperand saved[2];
  TensorMeta operand[2];
  int8_t input[2] = {-1, -1};

  /** `first` is the saved operand that an in-place op overwrites, else undefined. */
  BinaryBackward(const Info& op, const Pair& in, SavedTensor first) : info(&op) {
    saved[0].tensor = std::move(first);
    int8_t inputs = 0;
    for (int side = 0; side < 2; ++side) {
      const Tensor* t = in[side].tensor();
      if (!t) {
        saved[side].number = in[side].number();
        continue;
      }
      if (!saved[side].tensor.defined()) saved[side].tensor = SavedTensor(*t);
      operand[side] = TensorMeta(*t);
      input[side] = inputs++;
    }
  }

  void operator()(BackwardCall& call) const {
    const ElementwiseRule rule{.op = info->backward, .complex = true};
    const Tensor kept[] = {saved[0].tensor.get(), saved[1].tensor.get()};
    const auto ref = [&](int i) { return kept[i].defined() ? OperandRef(kept[i]) : OperandRef(saved[i].number); };
    for (int side = 0; side < 2; ++side) {
      if (input[side] < 0 || !call.needs(static_cast<size_t>(input[side]))) continue;
      check_gradient(*info, side);
      Tensor g;
      if (should_record(call.grad(), kept[0], kept[1])) {
        g = info->recorded_binary[side](call.grad(), {kept[0], saved[0].number}, {kept[1], saved[1].number});
      } else {
        const OperandRef inputs[] = {call.grad(), ref(0), ref(1)};
        const SpecialPart part = side == 0 ? SpecialPart::GradientA : SpecialPart::GradientB;
        g = elementwise(rule, special_kernels, info->number(part), inputs);
      }
      call.set(static_cast<size_t>(input[side]), gradient_for(operand[side], g));
    }
  }
};

bool records_binary(const Info& info, const Pair& in, const Tensor& out) {
  return !info.no_grad && should_record(in[0], in[1]) && out.is_differentiable();
}

Tensor binary(const Info& info, const Pair& in) {
  Tensor out = elementwise(info.rule, special_kernels, info.number(SpecialPart::Forward), in);
  if (!records_binary(info, in, out)) return out;
  const Tensor *a = in[0].tensor(), *b = in[1].tensor();
  if (a && b)
    record(info.backward, out, {*a, *b}, BinaryBackward(info, in, {}));
  else
    record(info.backward, out, {a ? *a : *b}, BinaryBackward(info, in, {}));
  return out;
}

const Tensor& binary_inplace(const Info& info, const Pair& in) {
  const Tensor& a = *in[0].tensor();
  check_strided(info.rule.op, a);
  const bool records = records_binary(info, in, a);
  check_inplace(a, records);
  if (!records) {
    elementwise_to(a, info.rule, special_kernels, info.number(SpecialPart::Forward), in);
    return a;
  }
  BinaryBackward backward(info, in, save_before_change(a));
  elementwise_to(a, info.rule, special_kernels, info.number(SpecialPart::Forward), in);
  if (in[1].tensor())
    record_inplace(info.backward, a, {a, *in[1].tensor()}, std::move(backward));
  else
    record_inplace(info.backward, a, {a}, std::move(backward));
  return a;
}

template <class F>
void check_operands(const Pair& in) {
  if constexpr (checks_operands<F>) F::check(in[0], in[1]);
}

}  // namespace

/** It is not defined for two integers. */
void special::op::Nextafter::check(const OperandRef& a, const OperandRef& b) {
  const auto has_next = [](const OperandRef& x) { return x.tensor() && x.tensor()->is_floating_point(); };
  for (const OperandRef& x : {a, b})
    if (x.tensor() && !has_next(a) && !has_next(b)) refuse_dtype("nextafter_cpu", x.tensor()->dtype());
}

/** It does not promote. */
void special::op::Heaviside::check(const OperandRef& a, const OperandRef& b) {
  for (const OperandRef& x : {a, b})
    TERCEL_CHECK(!x.tensor() || !x.tensor()->is_complex(), NotImplementedError,
                 "heaviside is not yet implemented for complex tensors.");
  TERCEL_CHECK(!a.tensor() || !b.tensor() || a.tensor()->dtype() == b.tensor()->dtype(), RuntimeError,
               "heaviside is not yet implemented for tensors with different dtypes.");
}

#define TERCEL_DEFINE_UNARY(name, F)                                                              \
  Tensor name(const Tensor& x) { return unary(kUnaryInfo<special::op::F>, x); }                   \
  const Tensor& name##_(const Tensor& x) { return unary_inplace(kUnaryInfo<special::op::F>, x); } \
  const Tensor& name##_out(const Tensor& out, const Tensor& x) {                                  \
    const OperandRef inputs[] = {x};                                                              \
    if (has_sparse(x, out)) return put_out(kUnaryInfo<special::op::F>.rule.op, out, name(x));     \
    return special_out(kUnaryInfo<special::op::F>, out, inputs);                                  \
  }
TERCEL_SPECIAL_UNARY_OPS(TERCEL_DEFINE_UNARY)
#undef TERCEL_DEFINE_UNARY

#define TERCEL_DEFINE_VARIANT(result, head, call, F, first, second) \
  result head {                                                     \
    const Pair in = {first, second};                                \
    check_operands<special::op::F>(in);                             \
    return call;                                                    \
  }
#define TERCEL_DEFINE_BINARY(name, F)                                                                                  \
  TERCEL_DEFINE_VARIANT(Tensor, name(const Tensor& a, const Tensor& b), binary(kBinaryInfo<special::op::F>, in), F, a, \
                        b)                                                                                             \
  TERCEL_DEFINE_VARIANT(Tensor, name(const Tensor& a, Scalar b), binary(kBinaryInfo<special::op::F>, in), F, a, b)     \
  TERCEL_DEFINE_VARIANT(Tensor, name(Scalar a, const Tensor& b), binary(kBinaryInfo<special::op::F>, in), F, a, b)     \
  TERCEL_DEFINE_VARIANT(const Tensor&, name##_(const Tensor& a, const Tensor& b),                                      \
                        binary_inplace(kBinaryInfo<special::op::F>, in), F, a, b)                                      \
  TERCEL_DEFINE_VARIANT(const Tensor&, name##_(const Tensor& a, Scalar b),                                             \
                        binary_inplace(kBinaryInfo<special::op::F>, in), F, a, b)                                      \
  TERCEL_DEFINE_VARIANT(const Tensor&, name##_out(const Tensor& out, const Tensor& a, const Tensor& b),                \
                        special_out(kBinaryInfo<special::op::F>, out, in), F, a, b)                                    \
  TERCEL_DEFINE_VARIANT(const Tensor&, name##_out(const Tensor& out, const Tensor& a, Scalar b),                       \
                        special_out(kBinaryInfo<special::op::F>, out, in), F, a, b)                                    \
  TERCEL_DEFINE_VARIANT(const Tensor&, name##_out(const Tensor& out, Scalar a, const Tensor& b),                       \
                        special_out(kBinaryInfo<special::op::F>, out, in), F, a, b)
TERCEL_SPECIAL_BINARY_OPS(TERCEL_DEFINE_BINARY)
#undef TERCEL_DEFINE_BINARY
#undef TERCEL_DEFINE_VARIANT

namespace {

void check_order(int64_t n) { TERCEL_CHECK(n >= 0, RuntimeError, "polygamma(n, x) does not support negative n."); }

}  // namespace

Tensor polygamma(int64_t n, const Tensor& x) {
  check_order(n);
  const Pair in = {Scalar(n), x};
  return binary(kBinaryInfo<special::op::Polygamma>, in);
}
const Tensor& polygamma_(const Tensor& x, int64_t n) {
  check_order(n);
  return assign_inplace("polygamma_", x, [n](const Tensor& before) { return polygamma(n, before); });
}
const Tensor& polygamma_out(const Tensor& out, int64_t n, const Tensor& x) {
  check_order(n);
  const Pair in = {Scalar(n), x};
  return special_out(kBinaryInfo<special::op::Polygamma>, out, in);
}

Tensor divide_integers(OperandRef a, OperandRef b) {
  const Pair in = {a, b};
  return binary(kBinaryInfo<special::op::DivTrunc>, in);
}

}  // namespace tercel
