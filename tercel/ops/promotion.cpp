// The dtype that an elementwise op calculates in. See Note [Promotion tiers].
#include "tercel/ops/promotion_impl.h"

#include "tercel/ops/tensor_iterator.h"

namespace tercel {

namespace {

[[gnu::cold, gnu::noinline]] void refuse_domain(const ElementwiseRule& rule, ScalarType dtype) {
  throw_error<NotImplementedError>({rule.op, ": not implemented for dtype ", to_string(dtype)});
}

ScalarType apply_domain(const ElementwiseRule& rule, ScalarType dtype) {
  if (is_complex(dtype) && !rule.complex) refuse_domain(rule, dtype);
  switch (rule.domain) {
    case Domain::Any: break;
    case Domain::Number:
      if (dtype == kBool) refuse_domain(rule, dtype);
      break;
    case Domain::Float: return is_differentiable(dtype) ? dtype : kFloat32;
    case Domain::Integral:
      if (!is_integral(dtype, true)) refuse_domain(rule, dtype);
      break;
    case Domain::Complex:
      if (!is_differentiable(dtype)) refuse_domain(rule, dtype);
      return complex_dtype(dtype);
  }
  return dtype;
}

ScalarType promote_defined(ScalarType a, ScalarType b) {
  if (a == ScalarType::Undefined) return b;
  return b == ScalarType::Undefined ? a : promote_types(a, b);
}

// See Note [Promotion tiers].
ScalarType combine_tiers(ScalarType higher, ScalarType lower) {
  if (higher == ScalarType::Undefined || lower == ScalarType::Undefined) return promote_defined(higher, lower);
  if (is_complex(higher)) return higher;
  if (is_floating(higher)) return is_complex(lower) ? complex_dtype(higher) : higher;
  return higher == kBool || is_differentiable(lower) ? promote_types(higher, lower) : higher;
}

/** Of a wrapped number: the default type of its category. */
ScalarType number_dtype(ScalarType t) {
  return is_complex(t) ? kComplex64 : (is_floating(t) ? kFloat32 : (t == kBool || t == kUInt64 ? t : kInt64));
}

template <class T>
bool holds(Scalar value) {
  return equals(Scalar(value.to<T>()), value);
}

/** A type in which an integer dtype can be compared with a number that it does not hold; see promote_operands(). */
ScalarType wider_for(ScalarType t, Scalar value) {
  // Beside uint64 stand negative numbers, beside signed types those above int64: float64 has the order right, as one of
  // the two is far from the other unless both are huge.
  return t == kUInt64 || value.is_above_int64() ? kFloat64 : kInt64;
}

}  // namespace

bool holds_number(ScalarType t, Scalar value) {
  switch (t) {
    case kUInt8: return holds<uint8_t>(value);
    case kInt8: return holds<int8_t>(value);
    case kInt16: return holds<int16_t>(value);
    case kUInt16: return holds<uint16_t>(value);
    case kInt32: return holds<int32_t>(value);
    case kUInt32: return holds<uint32_t>(value);
    case kUInt64: return holds<uint64_t>(value);
    default: return !value.is_above_int64();
  }
}

ScalarType promote_operands(const ElementwiseRule& rule, Span<OperandRef> inputs) {
  ScalarType with_dims = ScalarType::Undefined, without = ScalarType::Undefined, numbers = ScalarType::Undefined;
  for (size_t i = rule.conditions; i < inputs.size(); ++i) {
    if (const Tensor* t = inputs[i].tensor()) {
      const bool number = t->impl().is_wrapped_number();
      const ScalarType dtype = number ? number_dtype(t->dtype()) : t->dtype();
      ScalarType& tier = number ? numbers : (t->dim() > 0 ? with_dims : without);
      tier = tier == dtype ? tier : promote_defined(tier, dtype);
    } else {
      numbers = promote_defined(numbers, inputs[i].number().dtype());
    }
  }
  ScalarType common = combine_tiers(with_dims, combine_tiers(without, numbers));
  if (rule.predicate && is_integral(common, false)) {
    // A comparison with a number that the tensor's dtype cannot hold has an answer all the same.
    for (const OperandRef& input : inputs)
      if (!input.tensor() && !holds_number(common, input.number())) common = wider_for(common, input.number());
  }
  return apply_domain(rule, common);
}

}  // namespace tercel
