#include "tercel/ops/elementwise/binary.h"

#include <cstring>

#include "tercel/ops/common/complex_logs_impl.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/elementwise_impl.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/common/tensor_expression_impl.h"
#include "tercel/ops/elementwise/binary_ops.h"
#include "tercel/ops/elementwise/ternary_ops.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"

namespace tercel {

namespace {

constinit const KernelTable<ElementwiseFn> binary_kernels = TERCEL_KERNELS(binary);
constinit const KernelTable<ElementwiseFn> binary_backward_kernels = TERCEL_KERNELS(binary_backward);
constinit const KernelTable<ElementwiseFn> compare_kernels = TERCEL_KERNELS(compare);
constinit const KernelTable<ElementwiseFn> scaled_kernels = TERCEL_KERNELS(ternary);

/** The derivative with respect to one operand. */
struct Partial {
  Uses uses = Uses::None;
  bool is_one = false;
};

struct BinaryInfo {
  ElementwiseRule rule;
  const char* backward;
  int index;
  bool no_grad;
  Partial of[2];
  /** The gradients composed of ops: see Note [Recorded derivatives]. */
  BinaryGradientFn* recorded_gradient[2];
  /** Whether a number as the second operand has an undefined edge, as in PyTorch's graphs. */
  bool number_has_edge;
};

template <class F>
constexpr Partial partial_a() {
  if constexpr (has_constant_da<F>)
    return {Uses::None, F::template da<float>() == 1.0f};
  else
    return {has_no_grad<F> ? Uses::None : uses_of_da<F>(), false};
}
template <class F>
constexpr Partial partial_b() {
  if constexpr (has_constant_db<F>)
    return {Uses::None, F::template db<float>() == 1.0f};
  else
    return {has_no_grad<F> ? Uses::None : uses_of_db<F>(), false};
}

template <class F>
constexpr bool has_number_edge = requires {
  F::number_has_edge;
};
template <class F>
concept HasNumberFunction = requires {
  &F::with_number;
};

template <class F, class List>
constexpr BinaryInfo kInfo = {
    {.op = F::name, .domain = F::domain, .complex = takes_complex<F>, .predicate = is_predicate<F>},
    backward_name<F>,
    index_of<F, List>,
    has_no_grad<F>,
    {partial_a<F>(), partial_b<F>()},
    {&binary_gradient<F, 0>, &binary_gradient<F, 1>},
    has_number_edge<F>};

bool has(Uses uses, Uses which) { return (static_cast<int>(uses) & static_cast<int>(which)) != 0; }

// The operands to save, given the derivatives that may be requested.
Uses saved_uses(const BinaryInfo& info, bool grad_a, bool grad_b) {
  return static_cast<Uses>((grad_a ? static_cast<int>(info.of[0].uses) : 0) |
                           (grad_b ? static_cast<int>(info.of[1].uses) : 0));
}

/** A tensor operand whose gradient may be requested: its index among the node's inputs, and its shape. */
struct Target {
  int8_t input = -1;
  int8_t ndim = 0;
  ScalarType dtype = ScalarType::Undefined;
  bool was_broadcast = false;
  /** Bit d: dimension d has size 1 and was broadcast. */
  uint64_t repeated = 0;

  Target() = default;
  Target(int8_t number, const Tensor& operand, const Tensor& out)
      : input(number), ndim(static_cast<int8_t>(operand.dim())), dtype(operand.dtype()) {
    const IntSpan own = operand.sizes(), all = out.sizes();
    if (own == all || own.size() > all.size()) return;  // the latter: in place, which is refused next
    was_broadcast = true;
    const size_t lead = all.size() - own.size();
    for (size_t d = 0; d < own.size(); ++d)
      if (own[d] != all[lead + d]) repeated |= uint64_t{1} << d;
  }

  /** Sizes of the operand, from the broadcast sizes. */
  DimVector sizes(IntSpan all) const {
    DimVector own(static_cast<size_t>(ndim), 1);
    const size_t lead = all.size() - own.size();
    for (size_t d = 0; d < own.size(); ++d)
      if ((repeated >> d & 1) == 0) own[d] = all[lead + d];
    return own;
  }
  Tensor gradient(const Tensor& g) const { return to(sum_to_size(g, sizes(g.sizes())), dtype); }
};

struct BinaryBackward {
  const BinaryInfo* info;
  SavedOperand saved[2];
  Target target[2];

  void operator()(BackwardCall& call) const {
    for (int side = 0; side < 2; ++side) {
      const Target& to = target[side];
      if (to.input < 0 || !call.needs(static_cast<size_t>(to.input))) continue;
      Tensor g = gradient_of_side(call.grad(), side, to);
      if (to.was_broadcast || g.dtype() != to.dtype) g = to.gradient(g);
      call.set(static_cast<size_t>(to.input), std::move(g));
    }
  }

  Tensor gradient_of_side(const Tensor& g, int side, const Target& to) const {
    const Partial& partial = info->of[side];
    if (info->no_grad) return mul(g, 0);
    if (partial.is_one) return g;
    Tensor kept[2];
    for (int i = 0; i < 2; ++i)
      if (has(partial.uses, i == 0 ? Uses::A : Uses::B)) kept[i] = saved[i].tensor.get();
    // A COO gradient goes through the ops too, whose front ends know it.
    if (has_sparse(g) || should_record(g, kept[0], kept[1])) {
      return info->recorded_gradient[side](g, {kept[0], saved[0].number}, {kept[1], saved[1].number});
    }
    // If no sum follows, the kernel stores in the operand's dtype.
    const ElementwiseRule rule{
        .op = info->backward, .complex = true, .result = to.was_broadcast ? ScalarType::Undefined : to.dtype};
    const auto ref = [&](int i) { return kept[i].defined() ? OperandRef(kept[i]) : OperandRef(saved[i].number); };
    const OperandRef inputs[] = {g, ref(partial.uses == Uses::B ? 1 : 0), ref(1)};
    const size_t count = partial.uses == Uses::None ? 1 : (partial.uses == Uses::Both ? 3 : 2);
    return elementwise(rule, binary_backward_kernels, 2 * info->index + side, {inputs, count});
  }
};

using Pair = OperandRef[2];

/** Saves in `backward` what the gradients of the operands, tensors or numbers, use. */
void keep_for_backward(BinaryBackward& backward, const Pair& in, const Tensor& out) {
  const Uses uses = saved_uses(*backward.info, is_tracked(in[0]), is_tracked(in[1]));
  for (int side = 0; side < 2; ++side) {
    const Tensor* t = in[side].tensor();
    const bool needed = has(uses, side == 0 ? Uses::A : Uses::B);
    if (!t)
      backward.saved[side].number = in[side].number();
    else if (needed && !backward.saved[side].tensor.defined())
      backward.saved[side].tensor = SavedTensor(*t);
    if (t) backward.target[side] = Target(side == 1 && in[0].tensor() ? 1 : 0, *t, out);
  }
}

[[gnu::noinline]] void record_binary(const BinaryInfo& info, const Tensor& out, const Pair& in) {
  BinaryBackward backward{&info, {}, {}};
  keep_for_backward(backward, in, out);
  const Tensor *a = in[0].tensor(), *b = in[1].tensor();
  const Tensor none;
  if (a && (b || info.number_has_edge))
    record(info.backward, out, {*a, b ? *b : none}, std::move(backward));
  else
    record(info.backward, out, {a ? *a : *b}, std::move(backward));
}

Tensor binary(const BinaryInfo& info, const Pair& in) {
  Tensor out = elementwise(info.rule, binary_kernels, info.index, in);
  if (should_record(in[0], in[1]) && out.is_differentiable()) [[unlikely]]
    record_binary(info, out, in);
  return out;
}

[[gnu::noinline]] void binary_inplace_recorded(const BinaryInfo& info, const Pair& in) {
  const Tensor& a = *in[0].tensor();
  BinaryBackward backward{&info, {}, {}};
  // An overwritten operand is not available in backward.
  const Uses uses = saved_uses(info, is_tracked(a), is_tracked(in[1]));
  if (has(uses, Uses::A)) backward.saved[0].tensor = save_before_change(a);
  keep_for_backward(backward, in, a);
  elementwise_to(a, info.rule, binary_kernels, info.index, in);
  const Tensor none;
  if (in[1].tensor() || info.number_has_edge)
    record_inplace(info.backward, a, {a, in[1].tensor() ? *in[1].tensor() : none}, std::move(backward));
  else
    record_inplace(info.backward, a, {a}, std::move(backward));
}

const Tensor& binary_inplace(const BinaryInfo& info, const Pair& in) {
  const Tensor& a = *in[0].tensor();
  check_strided(info.rule.op, a);
  const bool records = should_record(in[0], in[1]) && a.is_differentiable();
  check_inplace(a, records);
  if (records) [[unlikely]]
    binary_inplace_recorded(info, in);
  else
    elementwise_to(a, info.rule, binary_kernels, info.index, in);
  return a;
}

const Tensor& binary_out(const BinaryInfo& info, const KernelTable<ElementwiseFn>& kernels, const Tensor& out,
                         const Pair& in) {
  if (!takes_result(info.rule.op, out, in))
    return put_out(info.rule.op, out, elementwise(info.rule, kernels, info.index, in));
  elementwise_to(out, info.rule, kernels, info.index, in);
  return out;
}

Tensor compare(const BinaryInfo& info, const Pair& in) {
  return elementwise(info.rule, compare_kernels, info.index, in);
}

// Rejects operands for which an integer op has no result.

bool is_integral_operand(const OperandRef& x) {
  return x.tensor() ? !x.tensor()->is_differentiable() : x.number().is_integral();
}

void check_divisor(const char* op, const OperandRef& a, const OperandRef& b) {
  // With a floating operand the result is floating, and division by zero is defined.
  if (!is_integral_operand(a) || !is_integral_operand(b)) return;
  bool has_zero;
  if (const Tensor* t = b.tensor()) {
    if (!t->device().is_cpu()) return;  // reading its elements would wait for the device; the result is undefined there
    const Tensor zeros = logical_not(*t);
    has_zero = zeros.numel() > 0 && std::memchr(zeros.data_ptr(), 1, static_cast<size_t>(zeros.numel()));
  } else {
    has_zero = !b.number().to_bool();
  }
  TERCEL_CHECK(!has_zero, RuntimeError, op, ": ZeroDivisionError");
}

bool is_bool_operand(const OperandRef& x) {
  return x.tensor() ? x.tensor()->defined() && x.tensor()->dtype() == kBool
                    : x.number().category() == TypeCategory::Bool;
}

bool is_complex_operand(const OperandRef& x) {
  return x.tensor() ? x.tensor()->defined() && x.tensor()->is_complex() : x.number().is_complex();
}

}  // namespace

void op::Fmod::check(const OperandRef& a, const OperandRef& b) { check_divisor(name, a, b); }
void op::Remainder::check(const OperandRef& a, const OperandRef& b) { check_divisor(name, a, b); }
void op::FloorDivide::check(const OperandRef& a, const OperandRef& b) { check_divisor(name, a, b); }

void op::Pow::check(const OperandRef& a, const OperandRef& b) {
  if (b.tensor() || !is_integral_operand(a) || !is_integral_operand(b)) return;
  TERCEL_CHECK(b.number().to_double() >= 0, RuntimeError, "Integers to negative integer powers are not allowed.");
}

void op::Sub::check(const OperandRef& a, const OperandRef& b) {
  const bool first = is_bool_operand(a), second = is_bool_operand(b);
  if (!first && !second) [[likely]]
    return;
  TERCEL_CHECK(!first || !second, NotImplementedError,
               "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
               "operator instead.");
  throw_error<NotImplementedError>(
      {"Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
       "the `~` or `logical_not()` operator instead."});
}

Tensor op::Logaddexp::composite(const Tensor& a, const Tensor& b) { return complex_logaddexp(a, b); }

Tensor op::Pow::with_number(const Tensor& a, Scalar b) {
  const bool same_dtype = b.is_integral() ? a.dtype() != kBool : a.is_differentiable() && !b.is_complex();
  if (same_dtype && equals(b, 2)) return square(a);
  if (b.is_floating() && equals(b, 0.5)) return sqrt(a);
  if (b.is_floating() && equals(b, -0.5)) return rsqrt(a);
  if (b.is_floating() && equals(b, -1)) return reciprocal(a);
  return {};
}

namespace {

template <class F>
void check_operands(const Pair& in) {
  if constexpr (checks_operands<F>) F::check(in[0], in[1]);
}

/** Whether the op is composite for these operands. */
template <class F>
bool is_composite(const Pair& in) {
  if constexpr (has_composite<F>)
    return is_complex_operand(in[0]) || is_complex_operand(in[1]);
  else
    return false;
}

Tensor as_tensor(const OperandRef& x) { return x.tensor() ? *x.tensor() : scalar_tensor(x.number(), kComplex64); }

bool has_sparse_operand(const Pair& in) {
  return (in[0].tensor() && has_sparse(*in[0].tensor())) || (in[1].tensor() && has_sparse(*in[1].tensor()));
}

[[noreturn]] void refuse_sparse(const char* op, const Pair& in) {
  const Tensor* a = in[0].tensor();
  refuse_layout(op, a && has_sparse(*a) ? a->layout() : in[1].tensor()->layout());
}

void check_sparse_divisor(const Tensor* divisor) {
  if (divisor && (has_sparse(*divisor) || divisor->dim() > 0)) sparse_refuse_divisor("floor division", *divisor);
}

/** See Note [Sparse operands]. */
template <class F>
[[gnu::cold, gnu::noinline]] Tensor of_sparse(const Pair& in) {
  const Tensor *a = in[0].tensor(), *b = in[1].tensor();
  if constexpr (std::is_same_v<F, op::Sub>) F::check(in[0], in[1]);
  if constexpr (std::is_same_v<F, op::Add> || std::is_same_v<F, op::Sub>) {
    const int sign = std::is_same_v<F, op::Add> ? 1 : -1;
    const OperandRef& other = in[1];
    return sparse_add(a ? *a : scalar_tensor(in[0].number()), b ? *b : scalar_tensor(other.number()), sign);
  } else if constexpr (std::is_same_v<F, op::Mul>) {
    return a && b ? sparse_mul(*a, *b) : a ? sparse_mul(*a, in[1].number()) : sparse_mul(*b, in[0].number());
  } else if constexpr (std::is_same_v<F, op::Div>) {
    if (a) return b ? sparse_div(*a, *b) : sparse_div(*a, in[1].number());
    return sparse_div(scalar_tensor(in[0].number()), *b);
  } else if constexpr (std::is_same_v<F, op::Pow> || std::is_same_v<F, op::FloorDivide>) {
    if constexpr (std::is_same_v<F, op::FloorDivide>) check_sparse_divisor(b);
    if (!a || !has_sparse(*a) || (b && (has_sparse(*b) || b->dim() > 0))) refuse_sparse(F::name, in);
    if constexpr (std::is_same_v<F, op::Pow>)
      TERCEL_CHECK(b || !equals(in[1].number(), 0), RuntimeError,
                   "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense");
    return sparse_map_values(F::name, *a, [&](const Tensor& values) {
      if constexpr (std::is_same_v<F, op::Pow>) return b ? pow(values, *b) : pow(values, in[1].number());
      return b ? floor_divide(values, *b) : floor_divide(values, in[1].number());
    });
  } else {
    refuse_sparse(F::name, in);
  }
}

template <class F>
Tensor checked(const Pair& in);

template <class F>
[[gnu::cold, gnu::noinline]] const Tensor& of_sparse_inplace(const Pair& in) {
  const Tensor& a = *in[0].tensor();
  const Tensor* b = in[1].tensor();
  if constexpr (std::is_same_v<F, op::Add>) {
    return sparse_add_("add_", a, b ? *b : scalar_tensor(in[1].number()), 1);
  } else if constexpr (std::is_same_v<F, op::Sub>) {
    F::check(in[0], in[1]);
    return sparse_add_("sub_", a, b ? *b : scalar_tensor(in[1].number()), -1);
  } else if constexpr (std::is_same_v<F, op::Mul>) {
    return b ? sparse_mul_(a, *b) : sparse_mul_(a, in[1].number());
  } else if constexpr (std::is_same_v<F, op::Div>) {
    return b ? sparse_div_(a, *b) : sparse_div_(a, in[1].number());
  } else {
    if constexpr (std::is_same_v<F, op::FloorDivide>) check_sparse_divisor(b);
    if (!has_sparse(a) || (b && (has_sparse(*b) || b->dim() > 0))) refuse_sparse(F::name, in);
    return sparse_assign_(a,
                          sparse_map_values(F::name, sparse_as_it_was(a, should_record(a)), [&](const Tensor& values) {
                            const Pair of_values = {values, in[1]};
                            return checked<F>(of_values);
                          }));
  }
}

template <class F>
Tensor checked(const Pair& in) {
  if (has_sparse_operand(in)) [[unlikely]]
    return of_sparse<F>(in);
  check_operands<F>(in);
  if constexpr (has_composite<F>)
    if (is_composite<F>(in)) return F::composite(as_tensor(in[0]), as_tensor(in[1]));
  return binary(kInfo<F, BinaryOps>, in);
}

template <class F>
const Tensor& checked_out(const Tensor& out, const Pair& in) {
  if (has_sparse(out) || has_sparse_operand(in)) [[unlikely]]
    return put_out(F::name, out, checked<F>(in));
  check_operands<F>(in);
  if (is_composite<F>(in)) return put_out(F::name, out, checked<F>(in));
  return binary_out(kInfo<F, BinaryOps>, binary_kernels, out, in);
}

template <class F>
Tensor with_number(const Tensor& a, Scalar b) {
  if constexpr (HasNumberFunction<F>)
    if (Tensor out = F::with_number(a, b); out.defined()) return out;
  const Pair in = {a, b};
  return checked<F>(in);
}

template <class F>
const Tensor& with_number_out(const Tensor& out, const Tensor& a, Scalar b) {
  // To give the same bits as the op without out, whose kernel may differ.
  if constexpr (HasNumberFunction<F>) return put_out(F::name, out, with_number<F>(a, b));
  const Pair in = {a, b};
  return checked_out<F>(out, in);
}

template <class F>
const Tensor& inplace(const Pair& in) {
  if (has_sparse_operand(in)) [[unlikely]]
    return of_sparse_inplace<F>(in);
  check_operands<F>(in);
  return binary_inplace(kInfo<F, BinaryOps>, in);
}

}  // namespace

// Operands are constructed in place: copying them right after would stall on store forwarding.
#define TERCEL_DEFINE_BINARY(name, F)                                                                                  \
  Tensor name(const Tensor& a, const Tensor& b) {                                                                      \
    const Pair in = {a, b};                                                                                            \
    return checked<op::F>(in);                                                                                         \
  }                                                                                                                    \
  Tensor name(const Tensor& a, Scalar b) { return with_number<op::F>(a, b); }                                          \
  Tensor name(Scalar a, const Tensor& b) {                                                                             \
    const Pair in = {a, b};                                                                                            \
    return checked<op::F>(in);                                                                                         \
  }                                                                                                                    \
  const Tensor& name##_out(const Tensor& out, const Tensor& a, const Tensor& b) {                                      \
    const Pair in = {a, b};                                                                                            \
    return checked_out<op::F>(out, in);                                                                                \
  }                                                                                                                    \
  const Tensor& name##_out(const Tensor& out, const Tensor& a, Scalar b) { return with_number_out<op::F>(out, a, b); } \
  const Tensor& name##_out(const Tensor& out, Scalar a, const Tensor& b) {                                             \
    const Pair in = {a, b};                                                                                            \
    return checked_out<op::F>(out, in);                                                                                \
  }                                                                                                                    \
  const Tensor& name##_(const Tensor& a, const Tensor& b) {                                                            \
    const Pair in = {a, b};                                                                                            \
    return inplace<op::F>(in);                                                                                         \
  }                                                                                                                    \
  const Tensor& name##_(const Tensor& a, Scalar b) {                                                                   \
    const Pair in = {a, b};                                                                                            \
    return inplace<op::F>(in);                                                                                         \
  }
TERCEL_BINARY_OPS(TERCEL_DEFINE_BINARY)
#undef TERCEL_DEFINE_BINARY

#define TERCEL_DEFINE_COMPARE(name, F)                                            \
  Tensor name(const Tensor& a, const Tensor& b) {                                 \
    const Pair in = {a, b};                                                       \
    return compare(kInfo<op::F, CompareOps>, in);                                 \
  }                                                                               \
  Tensor name(const Tensor& a, Scalar b) {                                        \
    const Pair in = {a, b};                                                       \
    return compare(kInfo<op::F, CompareOps>, in);                                 \
  }                                                                               \
  Tensor name(Scalar a, const Tensor& b) {                                        \
    const Pair in = {a, b};                                                       \
    return compare(kInfo<op::F, CompareOps>, in);                                 \
  }                                                                               \
  const Tensor& name##_out(const Tensor& out, const Tensor& a, const Tensor& b) { \
    const Pair in = {a, b};                                                       \
    return binary_out(kInfo<op::F, CompareOps>, compare_kernels, out, in);        \
  }                                                                               \
  const Tensor& name##_out(const Tensor& out, const Tensor& a, Scalar b) {        \
    const Pair in = {a, b};                                                       \
    return binary_out(kInfo<op::F, CompareOps>, compare_kernels, out, in);        \
  }                                                                               \
  const Tensor& name##_out(const Tensor& out, Scalar a, const Tensor& b) {        \
    const Pair in = {a, b};                                                       \
    return binary_out(kInfo<op::F, CompareOps>, compare_kernels, out, in);        \
  }
TERCEL_COMPARE_OPS(TERCEL_DEFINE_COMPARE)
#undef TERCEL_DEFINE_COMPARE

namespace {

constexpr ElementwiseRule kAddScaledRule{.op = op::AddScaled::name, .complex = true};
constexpr int kAddScaled = index_of<op::AddScaled, TernaryOps>;

bool is_one(Scalar alpha) { return alpha.category() != TypeCategory::Bool && equals(alpha, 1); }

/** For two bools, alpha must be a bool too. */
Scalar alpha_for(const Tensor& a, const Tensor& b, Scalar alpha) {
  return a.dtype() == kBool && b.dtype() == kBool ? Scalar(alpha.to<bool>()) : alpha;
}

Scalar negative(Scalar alpha) {
  if (alpha.is_complex()) return -alpha.to_complex();
  if (alpha.is_floating()) return -alpha.to_double();
  return static_cast<int64_t>(0 - alpha.to<uint64_t>());
}

void check_alpha(const char* op, const Tensor& a, const Tensor& b, Scalar alpha) {
  check_defined(op, a, "self");
  check_defined(op, b, "other");
  TERCEL_CHECK(alpha.category() != TypeCategory::Bool || (a.dtype() == kBool && b.dtype() == kBool), RuntimeError, op,
               ": Boolean alpha only supported for Boolean results.");
  TERCEL_CHECK(alpha.is_integral() || a.is_differentiable() || b.is_differentiable(), RuntimeError, op,
               ": For integral input tensors, argument alpha must not be a floating point number.");
  TERCEL_CHECK(!alpha.is_complex() || a.is_complex() || b.is_complex(), RuntimeError, op,
               ": For non-complex input tensors, argument alpha must not be a complex number.");
}

auto add_scaled_backward(const Tensor& a, const Tensor& b, const Tensor& out, Scalar alpha) {
  return [alpha, to_a = Target(0, a, out), to_b = Target(1, b, out)](BackwardCall& call) {
    if (call.needs(0)) call.set(0, to_a.gradient(call.grad()));
    if (call.needs(1)) call.set(1, to_b.gradient(mul(call.grad(), conjugate(alpha))));
  };
}

Tensor add_scaled(const Tensor& a, const Tensor& b, Scalar alpha) {
  const OperandRef inputs[] = {a, b, alpha};
  Tensor out = elementwise(kAddScaledRule, scaled_kernels, kAddScaled, inputs);
  if (should_record(a, b)) record("AddBackward0", out, {a, b}, add_scaled_backward(a, b, out, alpha));
  return out;
}

const Tensor& add_scaled_(const Tensor& a, const Tensor& b, Scalar alpha) {
  const bool records = should_record(a, b);
  check_inplace(a, records);
  const OperandRef inputs[] = {a, b, alpha};
  elementwise_to(a, kAddScaledRule, scaled_kernels, kAddScaled, inputs);
  if (records) record_inplace("AddBackward0", a, {a, b}, add_scaled_backward(a, b, a, alpha));
  return a;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b, Scalar alpha) {
  check_alpha("add", a, b, alpha);
  if (has_sparse(a, b)) [[unlikely]]
    return sparse_add(a, b, alpha);
  check_strided("add", a);
  check_strided("add", b, "other");
  if (is_one(alpha)) return add(a, b);
  return add_scaled(a, b, alpha_for(a, b, alpha));
}
const Tensor& add_(const Tensor& a, const Tensor& b, Scalar alpha) {
  check_alpha("add_", a, b, alpha);
  if (has_sparse(a, b)) [[unlikely]]
    return sparse_add_("add_", a, b, alpha);
  check_strided("add_", a);
  check_strided("add_", b, "other");
  if (is_one(alpha)) return add_(a, b);
  return add_scaled_(a, b, alpha_for(a, b, alpha));
}
Tensor sub(const Tensor& a, const Tensor& b, Scalar alpha) {
  check_alpha("sub", a, b, alpha);
  op::Sub::check(a, b);
  if (has_sparse(a, b)) [[unlikely]]
    return sparse_add(a, b, negative(alpha));
  check_strided("sub", a);
  check_strided("sub", b, "other");
  if (is_one(alpha)) return sub(a, b);
  return add_scaled(a, b, negative(alpha));
}
const Tensor& sub_(const Tensor& a, const Tensor& b, Scalar alpha) {
  check_alpha("sub_", a, b, alpha);
  op::Sub::check(a, b);
  if (has_sparse(a, b)) [[unlikely]]
    return sparse_add_("sub_", a, b, negative(alpha));
  check_strided("sub_", a);
  check_strided("sub_", b, "other");
  if (is_one(alpha)) return sub_(a, b);
  return add_scaled_(a, b, negative(alpha));
}

}  // namespace tercel
