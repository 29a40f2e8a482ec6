// Elementwise operations outside the lists of functors: with parameters, with three tensors, and composite ones.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/overlap_checks_impl.h"
#include "tercel/ops/common/promotion.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/special/special.h"

namespace tercel::python {

namespace {

using Number = std::optional<double>;
using Rounding = std::optional<std::string_view>;

/** Calls f with the tensor or the number. */
template <class F>
decltype(auto) with_operand(const Operand& o, F f) {
  return o.is_tensor() ? f(*o.tensor) : f(o.scalar);
}

std::optional<Tensor> bound(const Tensor& t) { return t.defined() ? std::optional(t) : std::nullopt; }

/** Converts a uint8 condition, used by older programs, to bool, with a warning. */
Tensor condition_of(const Tensor& condition) {
  if (condition.dtype() != kUInt8) return condition;
  warn(
      "where received a uint8 condition tensor. This behavior is deprecated. Use a boolean "
      "condition instead.");
  return to(condition, kBool);
}

Tensor select(const Tensor& given, const Operand& a, const Operand& b) {
  const Tensor condition = condition_of(given);
  if (a.is_tensor()) return with_operand(b, [&](const auto& y) { return where(condition, *a.tensor, y); });
  return with_operand(b, [&](const auto& y) { return where(condition, a.scalar, y); });
}

/** clamp() with numbers as bounds. */
Tensor clamped(const Tensor& x, const std::optional<Scalar>& low, const std::optional<Scalar>& high) {
  TERCEL_CHECK(low || high, RuntimeError, "clamp(): At least one of 'min' or 'max' must not be None");
  return !high ? clamp_min(x, *low) : !low ? clamp_max(x, *high) : clamp(x, *low, *high);
}
Tensor clamped_in_place(const Tensor& x, const std::optional<Scalar>& low, const std::optional<Scalar>& high) {
  TERCEL_CHECK(low || high, RuntimeError, "clamp(): At least one of 'min' or 'max' must not be None");
  return !high ? clamp_min_(x, *low) : !low ? clamp_max_(x, *high) : clamp_(x, *low, *high);
}

/** RuntimeError where `out` overlaps an operand in part. */
void check_out(const char* op, const Tensor& out, std::initializer_list<const Tensor*> operands) {
  if (!out.defined()) return;
  for (const Tensor* operand : operands) check_overlap(op, out, *operand);
}

// x + value * a * b, or x + value * a / b.
#define TERCEL_ADDC_ENTRY(name)                                                                     \
  entry(#name "(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1, Tensor out=None)", \
        [](const Tensor& x, const Tensor& a, const Tensor& b, Scalar value, const Tensor& out) {    \
          check_out(#name, out, {&x, &a, &b});                                                      \
          return into(#name, out, name(x, a, b, value));                                            \
        })

// One bound: a number or a tensor.
#define TERCEL_BOUND_ENTRIES(name, word, low, high)                                                          \
  entry(#name "(Tensor input, Tensor|Scalar " #word ", *, Tensor out=None)",                                 \
        [](const Tensor& x, Operand limit, const Tensor& out) {                                              \
          if (!limit.is_tensor()) return into(#name, out, name(x, limit.scalar));                            \
          [[maybe_unused]] const std::optional<Tensor> given = *limit.tensor, none;                          \
          return into(#name, out, clamp(x, low, high));                                                      \
        }),                                                                                                  \
      entry(#name "_(Tensor input, Tensor|Scalar " #word ")", [](const Tensor& x, Operand limit) -> Tensor { \
        if (!limit.is_tensor()) return name##_(x, limit.scalar);                                             \
        [[maybe_unused]] const std::optional<Tensor> given = *limit.tensor, none;                            \
        return clamp_(x, low, high);                                                                         \
      })

// A predicate: its result is bool, also in `out`.
#define TERCEL_QUESTION_ENTRY(name)                                                          \
  entry(#name "(Tensor input, *, Tensor out=None)", [](const Tensor& x, const Tensor& out) { \
    TERCEL_CHECK(!out.defined() || out.dtype() == kBool, RuntimeError,                       \
                 #name " does not support non-boolean outputs.");                            \
    return into(#name, out, name(x));                                                        \
  })

}  // namespace

Span<Entry> composite_ops() {
  static const Entry table[] = {
      TERCEL_QUESTION_ENTRY(isposinf),
      TERCEL_QUESTION_ENTRY(isneginf),
      TERCEL_QUESTION_ENTRY(signbit),
      entry(
          "clamp(Tensor input, Scalar min=None, Scalar max=None, *, Tensor out=None)",
          [](const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high, const Tensor& out) {
            return into("clamp", out, clamped(x, low, high));
          },
          kBoth | kCoo),
      entry(
          "clamp_(Tensor input, Scalar min=None, Scalar max=None)",
          [](const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high) {
            return clamped_in_place(x, low, high);
          },
          kBoth | kCoo),
      entry("clamp(Tensor input, Tensor min=None, Tensor max=None, *, Tensor out=None)",
            [](const Tensor& x, const Tensor& low, const Tensor& high, const Tensor& out) {
              return into("clamp", out, clamp(x, bound(low), bound(high)));
            }),
      entry("clamp_(Tensor input, Tensor min=None, Tensor max=None)",
            [](const Tensor& x, const Tensor& low, const Tensor& high) -> Tensor {
              return clamp_(x, bound(low), bound(high));
            }),
      TERCEL_BOUND_ENTRIES(clamp_min, min, given, none),
      TERCEL_BOUND_ENTRIES(clamp_max, max, none, given),
      entry("div(Tensor|Scalar input, Tensor|Scalar other, *, str? rounding_mode, Tensor out=None)",
            [](Operand x, Operand other, Rounding rounding, const Tensor& out) {
              const Tensor a = x.as_tensor();
              return into("div", out, with_operand(other, [&](const auto& y) { return div(a, y, rounding); }));
            }),
      entry(
          "div_(Tensor input, Tensor|Scalar other, *, str? rounding_mode)",
          [](const Tensor& x, Operand other, Rounding rounding) -> Tensor {
            return with_operand(other, [&](const auto& y) -> const Tensor& { return div_(x, y, rounding); });
          },
          kMethod),
      entry(
          "result_type(Tensor|Scalar tensor1, Tensor|Scalar tensor2)",
          [](Operand a, Operand b) {
            return with_operand(
                b, [&](const auto& y) { return a.is_tensor() ? result_type(*a.tensor, y) : result_type(a.scalar, y); });
          },
          kFunction | kCheap, "The dtype of the result of an operation on both."),
      entry("rsub(Tensor input, Tensor|Scalar other, *, Scalar alpha=1)",
            [](const Tensor& x, Operand other, Scalar alpha) { return rsub(x, other.as_tensor(), alpha); }),
      entry("float_power(Tensor input, Tensor|Scalar exponent, *, Tensor out=None)",
            [](const Tensor& x, Operand y, const Tensor& out) {
              const Tensor result = with_operand(y, [&](const auto& e) { return float_power(x, e); });
              TERCEL_CHECK(!out.defined() || out.dtype() == result.dtype(), RuntimeError,
                           "the output given to float_power has dtype ", legacy_name(out.dtype()),
                           " but the operation's result requires dtype ", legacy_name(result.dtype()));
              return into("float_power", out, result);
            }),
      entry(
          "float_power_(Tensor input, Tensor|Scalar exponent)",
          [](const Tensor& x, Operand y) -> Tensor {
            return with_operand(y, [&](const auto& e) -> const Tensor& { return float_power_(x, e); });
          },
          kMethod),
      entry("frexp(Tensor input, *, Tensor[] out=None)",
            [](const Tensor& x, const std::optional<std::vector<Tensor>>& out) {
              const MantissaAndExponent parts = frexp(x);
              if (out && out->size() == 2) {
                TERCEL_CHECK((*out)[0].dtype() == x.dtype(), RuntimeError, "frexp() expects mantissa to have dtype ",
                             cpp_type_name(x.dtype()), " but got ", cpp_type_name((*out)[0].dtype()));
                TERCEL_CHECK((*out)[1].dtype() == kInt32, RuntimeError,
                             "frexp() expects exponent to have int dtype but got ", cpp_type_name((*out)[1].dtype()));
              }
              return into("frexp", out, Named<2>{{"mantissa", "exponent"}, {parts.mantissa, parts.exponent}});
            }),
      entry("nan_to_num(Tensor input, float? nan=None, float? posinf=None, float? neginf=None, *, Tensor out=None)",
            [](const Tensor& x, Number nan, Number posinf, Number neginf, const Tensor& out) {
              TERCEL_CHECK(!out.defined() || out.dtype() == x.dtype(), RuntimeError,
                           "nan_to_num: dtype of out: ", legacy_name(out.dtype()),
                           " should be same as input: ", legacy_name(x.dtype()));
              return into("nan_to_num", out, nan_to_num(x, nan.value_or(0), posinf, neginf));
            }),
      entry(
          "nan_to_num_(Tensor input, float? nan=None, float? posinf=None, float? neginf=None)",
          [](const Tensor& x, Number nan, Number posinf, Number neginf) -> Tensor {
            return nan_to_num_(x, nan.value_or(0), posinf, neginf);
          },
          kBoth | kCoo),
      entry(
          "polygamma(Tensor input, int n)", [](const Tensor& x, int64_t n) { return polygamma(n, x); }, kMethod),
      entry(
          "where(Tensor condition, Tensor|Scalar input, Tensor|Scalar other, *, Tensor out=None)",
          [](const Tensor& condition, Operand a, Operand b, const Tensor& out) {
            return into("where", out, select(condition, a, b));
          },
          kFunction, "input where the condition is true, else other."),
      entry(
          "where(Tensor input, Tensor condition, Tensor|Scalar other)",
          [](const Tensor& x, const Tensor& condition, Operand b) {
            return select(condition, {&x, Scalar()}, b);
          },
          kMethod),
      entry("lerp(Tensor input, Tensor end, Tensor|Scalar weight, *, Tensor out=None)",
            [](const Tensor& a, const Tensor& b, Operand weight, const Tensor& out) {
              check_out("lerp", out, {&a, &b, weight.is_tensor() ? weight.tensor : &a});
              return into("lerp", out, with_operand(weight, [&](const auto& w) { return lerp(a, b, w); }));
            }),
      entry(
          "lerp_(Tensor input, Tensor end, Tensor|Scalar weight)",
          [](const Tensor& a, const Tensor& b, Operand weight) -> Tensor {
            return with_operand(weight, [&](const auto& w) -> const Tensor& { return lerp_(a, b, w); });
          },
          kMethod),
      TERCEL_ADDC_ENTRY(addcmul),
      TERCEL_ADDC_ENTRY(addcdiv),
  };
  return table;
}

}  // namespace tercel::python
