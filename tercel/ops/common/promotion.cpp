// The compute dtype of elementwise ops. See Note [Promotion tiers].
#include "tercel/ops/common/promotion.h"

#include <cmath>
#include <limits>

#include "tercel/core/default_dtype.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/promotion_impl.h"
#include "tercel/ops/common/tensor_iterator_impl.h"

namespace tercel {

namespace {

/** Ops for which PyTorch has a specific error message for a category. */
struct Refusal {
  std::string_view op;
  TypeCategory category;
  const char* sentence;
};
constexpr Refusal kRefusals[] = {
    {"neg", TypeCategory::Bool,
     "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` "
     "or "
     "`logical_not()` operator instead."},
    {"relu", TypeCategory::Bool, "Boolean inputs not supported for relu"},
    {"sign", TypeCategory::Complex,
     "Unlike NumPy's, sign() does not support complex numbers. Please use sgn() instead."},
    {"ceil", TypeCategory::Complex, "ceil is not supported for complex inputs"},
    {"floor", TypeCategory::Complex, "floor is not supported for complex inputs"},
    {"trunc", TypeCategory::Complex, "trunc is not supported for complex inputs"},
    {"round", TypeCategory::Complex, "round is not supported for complex inputs"},
    {"clamp", TypeCategory::Complex, "clamp is not supported for complex types"},
    {"clamp_min", TypeCategory::Complex, "clamp is not supported for complex types"},
    {"clamp_max", TypeCategory::Complex, "clamp is not supported for complex types"},
};

[[gnu::cold, gnu::noinline]] void refuse_domain(const ElementwiseRule& rule, ScalarType dtype) {
  for (const Refusal& refusal : kRefusals)
    TERCEL_CHECK(refusal.op != rule.op || refusal.category != category_of(dtype), NotImplementedError,
                 refusal.sentence);
  // For these PyTorch raises TypeError instead of NotImplementedError.
  for (const std::string_view op : {"maximum", "minimum", "fmax", "fmin"})
    TERCEL_CHECK(op != rule.op || !is_complex(dtype), TypeError, op, " not implemented for complex tensors.");
  refuse_dtype(str_cat({rule.op, "_cpu"}), dtype);
}

ScalarType apply_domain(const ElementwiseRule& rule, ScalarType dtype) {
  if (is_complex(dtype) && !rule.complex) refuse_domain(rule, dtype);
  switch (rule.domain) {
    case Domain::Any: break;
    case Domain::Number:
      if (dtype == kBool) refuse_domain(rule, dtype);
      break;
    case Domain::Float: return is_differentiable(dtype) ? dtype : default_dtype();
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

/** The default dtype of a wrapped number's category. */
ScalarType number_dtype(ScalarType t) {
  if (is_complex(t)) return complex_dtype(default_dtype());
  return is_floating(t) ? default_dtype() : (t == kBool || t == kUInt64 ? t : kInt64);
}

template <class T>
bool holds(Scalar value) {
  return equals(Scalar(value.to<T>()), value);
}

/** A dtype in which an integer dtype can be compared with a number outside its range; see promote_operands(). */
ScalarType wider_for(ScalarType t, Scalar value) {
  // uint64 with negative numbers, and signed types with numbers above int64, are compared in float64. The order is
  // correct, as the two operands are far apart unless both are huge.
  return t == kUInt64 || value.is_above_int64() ? kFloat64 : kInt64;
}

/** Whether a real number is in the range of T; for floating types also infinities and NaN. */
template <class T>
bool within(double value) {
  if constexpr (std::is_integral_v<T>) {
    // The upper bound is a power of two, which is exact in float64; both comparisons are false for NaN.
    return value < std::ldexp(1.0, std::numeric_limits<T>::digits) &&
           value >= static_cast<double>(std::numeric_limits<T>::min());
  } else {
    return !std::isfinite(value) || std::fabs(value) <= static_cast<double>(std::numeric_limits<T>::max());
  }
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

void check_number_fits(ScalarType t, Scalar value) {
  const bool fits = visit_all_types("check_number_fits", t, [&]<class T> {
    if constexpr (std::is_same_v<T, bool>) {
      return true;
    } else if constexpr (is_complex_number<T>) {
      using Part = decltype(T::re);
      const Complex<double> number = value.to_complex();
      return within<Part>(number.re) && within<Part>(number.im);
    } else {
      if (value.is_complex() && value.to_complex().im != 0) return false;
      if (!std::is_integral_v<T> || !value.is_integral()) return within<T>(value.to_double());
      // Negative numbers down to -max wrap for unsigned types.
      if constexpr (std::is_unsigned_v<T>)
        if (!value.is_above_int64() && value.to_int64() < 0)
          return static_cast<uint64_t>(0) - static_cast<uint64_t>(value.to_int64()) <= std::numeric_limits<T>::max();
      return holds_number(t, value);
    }
  });
  TERCEL_CHECK(fits, RuntimeError, "value cannot be converted to type ", cpp_type_alias(t), " without overflow");
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
      numbers = promote_defined(numbers, number_dtype(inputs[i].number().dtype()));
    }
  }
  ScalarType common = combine_tiers(with_dims, combine_tiers(without, numbers));
  if (rule.predicate && is_integral(common, false)) {
    // A comparison with a number outside the range of the tensor's dtype must give the exact result.
    for (const OperandRef& input : inputs)
      if (!input.tensor() && !holds_number(common, input.number())) common = wider_for(common, input.number());
  }
  return apply_domain(rule, common);
}

namespace {

ScalarType type_of_both(OperandRef a, OperandRef b) {
  return promote_operands({.op = "result_type", .complex = true}, {a, b});
}

}  // namespace

ScalarType result_type(const Tensor& a, const Tensor& b) { return type_of_both(a, b); }
ScalarType result_type(const Tensor& a, Scalar b) { return type_of_both(a, b); }
ScalarType result_type(Scalar a, const Tensor& b) { return type_of_both(a, b); }
ScalarType result_type(Scalar a, Scalar b) { return type_of_both(a, b); }

}  // namespace tercel
