#include "tercel/ops/elementwise/unary.h"

#include <limits>

#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/elementwise_impl.h"
#include "tercel/ops/common/linear_beyond_impl.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/common/promotion_impl.h"
#include "tercel/ops/common/tensor_expression_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/composite_impl.h"
#include "tercel/ops/elementwise/unary_ops.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"

namespace tercel {

namespace {

constinit const KernelTable<ElementwiseFn> unary_kernels = TERCEL_KERNELS(unary);
constinit const KernelTable<ElementwiseFn> unary_backward_kernels = TERCEL_KERNELS(unary_backward);

/** What is saved for backward. */
enum class Saves : uint8_t { Nothing, Input, Output };

struct UnaryInfo {
  ElementwiseRule rule;
  const char* backward;
  int index;
  Saves saves;
  /** The gradient composed of ops: see Note [Recorded derivatives]. */
  UnaryGradientFn* recorded_gradient;
  /** For dtypes that the op's rule does not support, or null. */
  Tensor (*composite)(const Tensor& x);
};

template <class F>
constexpr auto composite_of() -> Tensor (*)(const Tensor&) {
  if constexpr (has_composite<F>)
    return &F::composite;
  else
    return nullptr;
}

template <class F>
constexpr UnaryInfo kInfo = {{.op = F::name,
                              .domain = F::domain,
                              .complex = takes_complex<F>,
                              .real = is_real_valued<F>,
                              .predicate = is_predicate<F>},
                             backward_name<F>,
                             index_of<F, UnaryOps>,
                             has_dx<F> ? Saves::Input : (has_dy<F> ? Saves::Output : Saves::Nothing),
                             &unary_gradient<F>,
                             composite_of<F>()};

bool is_composite(const UnaryInfo& info, const Tensor& x) {
  return info.composite && x.defined() && (info.rule.complex ? x.dtype() == kBool : x.is_complex());
}

/** Up to two parameters. */
struct Parameters {
  Scalar value[2];
  uint8_t count = 0;
};

/** A tensor and the parameters, as operands. */
struct Operands {
  OperandRef ref[1 + 1 + 2];
  size_t count;

  Operands(const Tensor& x, const Parameters& p) : ref{x, p.value[0], p.value[1], Scalar()}, count(1u + p.count) {}
  Operands(const Tensor& g, const Tensor& saved, const Parameters& p)
      : ref{g, saved, p.value[0], p.value[1]}, count(2u + p.count) {}
  operator Span<OperandRef>() const { return {ref, count}; }
};

struct UnaryBackward {
  const UnaryInfo* info;
  SavedTensor saved;
  Parameters parameters;

  void operator()(BackwardCall& call) const {
    const ElementwiseRule rule{.op = info->backward, .complex = true};
    if (info->saves == Saves::Nothing) {
      if (has_sparse(call.grad()) || should_record(call.grad())) return call.set(0, recorded(call, Tensor()));
      const OperandRef inputs[] = {call.grad()};
      call.set(0, elementwise(rule, unary_backward_kernels, info->index, inputs));
    } else {
      const Tensor kept = saved.get(call);
      if (has_sparse(call.grad()) || should_record(call.grad(), kept)) return call.set(0, recorded(call, kept));
      call.set(0, elementwise(rule, unary_backward_kernels, info->index, Operands(call.grad(), kept, parameters)));
    }
  }
  Tensor recorded(const BackwardCall& call, const Tensor& kept) const {
    return info->recorded_gradient(call.grad(), kept, Span<Scalar>(parameters.value, parameters.count));
  }
};

Tensor unary(const UnaryInfo& info, const Tensor& x, const Parameters& p = {}) {
  if (has_sparse(x)) [[unlikely]] {
    if (info.index == index_of<op::Neg, UnaryOps>) return sparse_neg(x);
    return sparse_map_values(info.rule.op, x, [&](const Tensor& values) { return unary(info, values, p); });
  }
  if (is_composite(info, x)) [[unlikely]]
    return info.composite(x);
  Tensor out = elementwise(info.rule, unary_kernels, info.index, Operands(x, p));
  if (should_record(x) && !info.rule.predicate) {
    SavedTensor saved = info.saves == Saves::Input    ? SavedTensor(x)
                        : info.saves == Saves::Output ? SavedTensor::output(out)
                                                      : SavedTensor();
    record(info.backward, out, {x}, UnaryBackward{&info, std::move(saved), p});
  }
  return out;
}

const Tensor& unary_inplace(const UnaryInfo& info, const Tensor& x, const Parameters& p = {}) {
  const bool sparse = has_sparse(x);
  if (!sparse) [[likely]]
    check_strided(info.rule.op, x);
  TERCEL_CHECK(!info.rule.real || !x.is_complex(), RuntimeError, "In-place ", info.rule.op,
               " is not supported for complex tensors.");
  if (sparse) [[unlikely]] {
    // Needs no coalesced operand.
    if (info.index == index_of<op::Neg, UnaryOps>)
      return sparse_assign_(x, sparse_neg(sparse_as_it_was(x, should_record(x))));
    return sparse_map_values_(info.rule.op, x, [&](const Tensor& values) { return unary(info, values, p); });
  }
  const bool records = should_record(x);
  check_inplace(x, records);
  SavedTensor saved;
  if (records && info.saves == Saves::Input) saved = save_before_change(x);
  elementwise_to(x, info.rule, unary_kernels, info.index, Operands(x, p));
  if (records) {
    if (info.saves == Saves::Output) saved = SavedTensor::output(x);
    record_inplace(info.backward, x, {x}, UnaryBackward{&info, std::move(saved), p});
  }
  return x;
}

const Tensor& unary_out(const UnaryInfo& info, const Tensor& out, const Tensor& x) {
  const OperandRef inputs[] = {x};
  if (has_sparse(x, out) || !takes_result(info.rule.op, out, inputs) || is_composite(info, x))
    return put_out(info.rule.op, out, unary(info, x));
  elementwise_to(out, info.rule, unary_kernels, info.index, inputs);
  return out;
}

}  // namespace

/** The square of bools is an integer, as a power with an integer exponent. */
Tensor op::Square::composite(const Tensor& x) { return square(to(x, kInt64)); }
Tensor op::Softsign::composite(const Tensor& x) { return div(x, add(abs(x), 1)); }

#define TERCEL_DEFINE_UNARY(name, F)                              \
  Tensor name(const Tensor& x) { return unary(kInfo<op::F>, x); } \
  const Tensor& name##_out(const Tensor& out, const Tensor& x) { return unary_out(kInfo<op::F>, out, x); }
#define TERCEL_DEFINE_UNARY_INPLACE(name, F) \
  const Tensor& name##_(const Tensor& x) { return unary_inplace(kInfo<op::F>, x); }
TERCEL_UNARY_OPS(TERCEL_DEFINE_UNARY)
TERCEL_UNARY_OPS(TERCEL_DEFINE_UNARY_INPLACE)
TERCEL_UNARY_PREDICATES(TERCEL_DEFINE_UNARY)
#undef TERCEL_DEFINE_UNARY
#undef TERCEL_DEFINE_UNARY_INPLACE

Tensor leaky_relu(const Tensor& x, Scalar negative_slope) {
  return unary(kInfo<op::LeakyRelu>, x, {{negative_slope}, 1});
}
const Tensor& leaky_relu_(const Tensor& x, Scalar negative_slope) {
  return unary_inplace(kInfo<op::LeakyRelu>, x, {{negative_slope}, 1});
}
Tensor hardswish_of_floats(const Tensor& x) { return unary(kInfo<op::Hardswish>, x); }
Tensor nan_to_num_of_floats(const Tensor& x, double nan, double largest) {
  return unary(kInfo<op::NanToNum>, x, {{nan, largest}, 2});
}
Tensor gelu_tanh(const Tensor& x) { return unary(kInfo<op::GeluTanh>, x); }
Tensor elu_of(const Tensor& x, double below, double above) { return unary(kInfo<op::Elu>, x, {{below, above}, 2}); }
Tensor linear_beyond_into(const Tensor& x, double limit, double scale) {
  const NoRecordGuard no_record;
  const Parameters p = {{limit, scale}, 2};
  const UnaryInfo& info = kInfo<op::LinearBeyond>;
  return x.is_floating_point() ? unary_inplace(info, x, p) : unary(info, x, p);
}
Tensor softplus(const Tensor& x, Scalar beta, Scalar threshold) {
  return unary(kInfo<op::Softplus>, x, {{beta, threshold}, 2});
}

namespace {

/**
 * A bound for integers. A bound outside the range of their type, which would wrap when converted, becomes the end of
 * the range. RuntimeError if no value of the type satisfies it.
 */
Scalar bound_for(const Tensor& x, Scalar bound, bool is_lower) {
  if (!x.defined() || !is_integral(x.dtype(), false) || !bound.is_integral() || holds_number(x.dtype(), bound))
    return bound;
  return visit_types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      "clamp", x.dtype(), [&]<class T> {
        const bool below = !bound.is_above_int64() && bound.to_int64() < 0;
        TERCEL_CHECK(below == is_lower, RuntimeError, "Clamp ", is_lower ? "min" : "max", " value ", to_string(bound),
                     " is outside the representable range of ", scalar_type_word(x.dtype()));
        return Scalar(below ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
      });
}

}  // namespace

Tensor clamp(const Tensor& x, Scalar low, Scalar high) {
  return unary(kInfo<op::Clamp>, x, {{bound_for(x, low, true), bound_for(x, high, false)}, 2});
}
const Tensor& clamp_(const Tensor& x, Scalar low, Scalar high) {
  return unary_inplace(kInfo<op::Clamp>, x, {{bound_for(x, low, true), bound_for(x, high, false)}, 2});
}
Tensor clamp_min(const Tensor& x, Scalar low) { return unary(kInfo<op::ClampMin>, x, {{bound_for(x, low, true)}, 1}); }
const Tensor& clamp_min_(const Tensor& x, Scalar low) {
  return unary_inplace(kInfo<op::ClampMin>, x, {{bound_for(x, low, true)}, 1});
}
Tensor clamp_max(const Tensor& x, Scalar high) {
  return unary(kInfo<op::ClampMax>, x, {{bound_for(x, high, false)}, 1});
}
const Tensor& clamp_max_(const Tensor& x, Scalar high) {
  return unary_inplace(kInfo<op::ClampMax>, x, {{bound_for(x, high, false)}, 1});
}

Tensor bitwise_not(const Tensor& x) {
  check_strided("bitwise_not", x);
  if (x.is_differentiable()) refuse_dtype("bitwise_not_cpu", x.dtype());
  return x.dtype() == kBool ? logical_not(x) : bitwise_xor(x, -1);
}

}  // namespace tercel
