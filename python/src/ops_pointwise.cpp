// Elementwise operations: whole families come from the library's own lists, so that what is added there appears here.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/core/geometry.h"
#include "tercel/ops/binary.h"
#include "tercel/ops/binary_ops.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/tensor_iterator.h"
#include "tercel/ops/ternary.h"
#include "tercel/ops/unary.h"
#include "tercel/ops/unary_ops.h"

namespace tercel::python {

namespace {

void prepare_unary(const char* op, const Tensor& out, const Tensor& x) {
  prepare_out(op, out, x.sizes(), x.requires_grad());
}
void prepare_binary(const char* op, const Tensor& out, const Tensor& a, const Tensor& b) {
  prepare_out(op, out, broadcast_sizes(a.sizes(), b.sizes()), a.requires_grad() || b.requires_grad());
}

/** Tensor and tensor, tensor and number, number and tensor. */
template <class F>
Tensor with_operands(const Operand& a, const Operand& b, F f) {
  if (a.is_tensor()) return b.is_tensor() ? f(*a.tensor, *b.tensor) : f(*a.tensor, b.scalar);
  return b.is_tensor() ? f(a.scalar, *b.tensor) : f(a.as_tensor(), b.as_tensor());
}

#define TERCEL_UNARY_ENTRY(name)                                                                       \
  entry(#name "(Tensor input, *, Tensor out=None)", [](const Tensor& x, const Tensor& out) -> Tensor { \
    if (!out.defined()) [[likely]]                                                                     \
      return name(x);                                                                                  \
    prepare_unary(#name, out, x);                                                                      \
    return name##_out(out, x);                                                                         \
  }),
#define TERCEL_UNARY_ENTRIES(name, Functor) \
  TERCEL_UNARY_ENTRY(name)                  \
  entry(#name "_(Tensor input)", [](const Tensor& x) -> Tensor { return name##_(x); }),
#define TERCEL_PREDICATE_ENTRIES(name, Functor) TERCEL_UNARY_ENTRY(name)

#define TERCEL_BINARY_RESULT_ENTRIES(name)                                                                     \
  entry(#name "(Tensor input, Tensor|Scalar other, *, Tensor out=None)",                                       \
        [](const Tensor& x, Operand other, const Tensor& out) -> Tensor {                                      \
          if (!out.defined()) [[likely]]                                                                       \
            return other.is_tensor() ? name(x, *other.tensor) : name(x, other.scalar);                         \
          const Tensor y = other.as_tensor();                                                                  \
          prepare_binary(#name, out, x, y);                                                                    \
          return name##_out(out, x, y);                                                                        \
        }),                                                                                                    \
      entry(                                                                                                   \
          #name "(Scalar input, Tensor other, *, Tensor out=None)",                                            \
          [](Scalar x, const Tensor& y, const Tensor& out) -> Tensor { return into(#name, out, name(x, y)); }, \
          kFunction),
#define TERCEL_COMPARE_ENTRIES(name, Functor)                                                \
  TERCEL_BINARY_RESULT_ENTRIES(name)                                                         \
  entry(                                                                                     \
      #name "_(Tensor input, Tensor|Scalar other)",                                          \
      [](const Tensor& x, Operand other) -> Tensor {                                         \
        return copy_(x, other.is_tensor() ? name(x, *other.tensor) : name(x, other.scalar)); \
      },                                                                                     \
      kMethod),
#define TERCEL_BINARY_ENTRIES(name, Functor)                                             \
  TERCEL_BINARY_RESULT_ENTRIES(name)                                                     \
  entry(                                                                                 \
      #name "_(Tensor input, Tensor|Scalar other)",                                      \
      [](const Tensor& x, Operand other) -> Tensor {                                     \
        return other.is_tensor() ? name##_(x, *other.tensor) : name##_(x, other.scalar); \
      },                                                                                 \
      kMethod),

/** a + alpha * b and a - alpha * b, whose multiplier the lists do not know. */
template <class F>
Tensor scaled(const Tensor& x, const Operand& other, Scalar alpha, F f) {
  TERCEL_CHECK(alpha.category() != TypeCategory::Floating || x.is_floating_point() ||
                   (other.is_tensor() && other.tensor->is_floating_point()),
               RuntimeError, "For integral input tensors, argument alpha must not be a floating point number.");
  return f(x, other.as_tensor(), alpha);
}
bool is_one(const Scalar& s) { return !s.is_floating() && s.category() != TypeCategory::Bool && s.to_int64() == 1; }

#define TERCEL_SCALED_ENTRIES(name)                                                                               \
  entry(#name "(Tensor input, Tensor|Scalar other, *, Scalar alpha=1, Tensor out=None)",                          \
        [](const Tensor& x, Operand other, Scalar alpha, const Tensor& out) -> Tensor {                           \
          if (!is_one(alpha)) {                                                                                   \
            const auto f = [](const Tensor& a, const Tensor& b, Scalar s) { return name(a, b, s); };              \
            return into(#name, out, scaled(x, other, alpha, f));                                                  \
          }                                                                                                       \
          if (!out.defined()) [[likely]]                                                                          \
            return other.is_tensor() ? name(x, *other.tensor) : name(x, other.scalar);                            \
          const Tensor y = other.as_tensor();                                                                     \
          prepare_binary(#name, out, x, y);                                                                       \
          return name##_out(out, x, y);                                                                           \
        }),                                                                                                       \
      entry(                                                                                                      \
          #name "_(Tensor input, Tensor|Scalar other, *, Scalar alpha=1)",                                        \
          [](const Tensor& x, Operand other, Scalar alpha) -> Tensor {                                            \
            if (is_one(alpha)) return other.is_tensor() ? name##_(x, *other.tensor) : name##_(x, other.scalar);   \
            return scaled(x, other, alpha,                                                                        \
                          [](const Tensor& a, const Tensor& b, Scalar s) -> Tensor { return name##_(a, b, s); }); \
          },                                                                                                      \
          kMethod)

/** x / y, rounded: down to floor_divide()'s result, or toward zero. */
Tensor rounded_quotient(const Tensor& x, const Operand& other, std::string_view rounding) {
  TERCEL_CHECK(rounding == "trunc" || rounding == "floor", RuntimeError,
               "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", rounding, "'");
  const auto with_other = [&](auto f) { return other.is_tensor() ? f(*other.tensor) : f(other.scalar); };
  const Tensor floor = with_other([&](const auto& y) { return floor_divide(x, y); });
  if (rounding == "floor") return floor;
  // Of integers: what is left once the remainder toward zero is taken away divides without one.
  if (!floor.is_floating_point()) return with_other([&](const auto& y) { return floor_divide(sub(x, fmod(x, y)), y); });
  return with_other([&](const auto& y) { return trunc(div(x, y)); });
}

/** clamp() by tensors. */
Tensor clamped(const Tensor& x, const Tensor& low, const Tensor& high) {
  TERCEL_CHECK(low.defined() || high.defined(), RuntimeError,
               "torch.clamp: At least one of 'min' or 'max' must not be None");
  const Tensor raised = low.defined() ? maximum(x, low) : x;
  return high.defined() ? minimum(raised, high) : raised;
}

OperandRef operand_ref(const Operand& o) { return o.is_tensor() ? OperandRef(*o.tensor) : OperandRef(o.scalar); }

/** Whether the module wants what the lists give: not add and sub without alpha, and a number first only where PyTorch
 * has that. */
bool is_wanted(const Entry& e) {
  const std::string_view text(e.signature);
  const std::string_view name = text.substr(0, text.find('('));
  const bool scaled_op = name == "add" || name == "sub" || name == "add_" || name == "sub_";
  if (scaled_op) return text.find("alpha") != std::string_view::npos;
  if (text.find("(Scalar input, Tensor other") == std::string_view::npos) return true;
  for (const std::string_view known : {"pow", "remainder", "bitwise_and", "bitwise_or", "bitwise_xor", "float_power",
                                       "xlogy", "bitwise_left_shift", "bitwise_right_shift"})
    if (name == known) return true;
  return false;
}

}  // namespace

Span<Entry> pointwise_ops() {
  // clang-format off
  static const Entry all[] = {
      TERCEL_SCALED_ENTRIES(add),
      TERCEL_SCALED_ENTRIES(sub),
      TERCEL_UNARY_OPS(TERCEL_UNARY_ENTRIES)
      TERCEL_UNARY_PREDICATES(TERCEL_PREDICATE_ENTRIES)
      TERCEL_BINARY_OPS(TERCEL_BINARY_ENTRIES)
      TERCEL_COMPARE_OPS(TERCEL_COMPARE_ENTRIES)
      // clang-format on
      entry(
          "clamp(Tensor input, Scalar min=None, Scalar max=None, *, Tensor out=None)",
          [](const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high, const Tensor& out) {
            TERCEL_CHECK(low || high, RuntimeError, "clamp: At least one of 'min' or 'max' must not be None");
            return into("clamp", out, !high ? clamp_min(x, *low) : !low ? clamp_max(x, *high) : clamp(x, *low, *high));
          }),
      entry("clamp_(Tensor input, Scalar min=None, Scalar max=None)",
            [](const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high) -> Tensor {
              TERCEL_CHECK(low || high, RuntimeError, "clamp: At least one of 'min' or 'max' must not be None");
              return !high ? clamp_min_(x, *low) : !low ? clamp_max_(x, *high) : clamp_(x, *low, *high);
            }),
      entry("clamp(Tensor input, Tensor min=None, Tensor max=None, *, Tensor out=None)",
            [](const Tensor& x, const Tensor& low, const Tensor& high, const Tensor& out) {
              return into("clamp", out, clamped(x, low, high));
            }),
      entry("clamp_(Tensor input, Tensor min=None, Tensor max=None)",
            [](const Tensor& x, const Tensor& low, const Tensor& high) -> Tensor {
              return copy_(x, clamped(x, low, high));
            }),
      entry("div(Tensor input, Tensor|Scalar other, *, str? rounding_mode, Tensor out=None)",
            [](const Tensor& x, Operand other, std::optional<std::string_view> rounding, const Tensor& out) {
              if (rounding) return into("div", out, rounded_quotient(x, other, *rounding));
              return into("div", out, other.is_tensor() ? div(x, *other.tensor) : div(x, other.scalar));
            }),
      entry(
          "div_(Tensor input, Tensor|Scalar other, *, str? rounding_mode)",
          [](const Tensor& x, Operand other, std::optional<std::string_view> rounding) -> Tensor {
            if (rounding) return copy_(x, rounded_quotient(x, other, *rounding));
            return other.is_tensor() ? div_(x, *other.tensor) : div_(x, other.scalar);
          },
          kMethod),
      entry(
          "result_type(Tensor|Scalar tensor1, Tensor|Scalar tensor2)",
          [](Operand a, Operand b) {
            const OperandRef operands[] = {operand_ref(a), operand_ref(b)};
            return promote_operands({"result_type"}, operands);
          },
          kFunction | kCheap, "The dtype that an operation on both calculates in."),
      entry("rsub(Tensor input, Tensor|Scalar other, *, Scalar alpha=1)",
            [](const Tensor& x, Operand other, Scalar alpha) { return sub(other.as_tensor(), x, alpha); }),
      entry(
          "positive(Tensor input)",
          [](const Tensor& x) {
            TERCEL_CHECK(x.dtype() != kBool, RuntimeError, "The `+` operator, on a bool tensor is not supported.");
            return x;
          },
          kBoth | kCheap),
      entry("clamp_min(Tensor input, Scalar min, *, Tensor out=None)",
            [](const Tensor& x, Scalar low, const Tensor& out) { return into("clamp_min", out, clamp_min(x, low)); }),
      entry("clamp_min_(Tensor input, Scalar min)",
            [](const Tensor& x, Scalar low) -> Tensor { return clamp_min_(x, low); }),
      entry("clamp_max(Tensor input, Scalar max, *, Tensor out=None)",
            [](const Tensor& x, Scalar high, const Tensor& out) { return into("clamp_max", out, clamp_max(x, high)); }),
      entry("clamp_max_(Tensor input, Scalar max)",
            [](const Tensor& x, Scalar high) -> Tensor { return clamp_max_(x, high); }),
      entry("bitwise_not(Tensor input, *, Tensor out=None)",
            [](const Tensor& x, const Tensor& out) { return into("bitwise_not", out, bitwise_not(x)); }),
      entry(
          "leaky_relu(Tensor input, Scalar negative_slope=0.01)",
          [](const Tensor& x, Scalar slope) { return leaky_relu(x, slope); }, kNn),
      entry(
          "leaky_relu_(Tensor input, Scalar negative_slope=0.01)",
          [](const Tensor& x, Scalar slope) -> Tensor { return leaky_relu_(x, slope); }, kNn),
      entry(
          "softplus(Tensor input, Scalar beta=1, Scalar threshold=20)",
          [](const Tensor& x, Scalar beta, Scalar threshold) { return softplus(x, beta, threshold); }, kNn),
      entry(
          "where(Tensor condition, Tensor|Scalar input, Tensor|Scalar other, *, Tensor out=None)",
          [](const Tensor& condition, Operand a, Operand b, const Tensor& out) {
            return into("where", out,
                        with_operands(a, b, [&](const auto& x, const auto& y) { return where(condition, x, y); }));
          },
          kFunction, "input where the condition is true, else other."),
      entry(
          "where(Tensor input, Tensor condition, Tensor|Scalar other)",
          [](const Tensor& x, const Tensor& condition, Operand b) {
            return b.is_tensor() ? where(condition, x, *b.tensor) : where(condition, x, b.scalar);
          },
          kMethod),
      entry("lerp(Tensor input, Tensor end, Tensor|Scalar weight, *, Tensor out=None)",
            [](const Tensor& a, const Tensor& b, Operand weight, const Tensor& out) {
              return into("lerp", out, weight.is_tensor() ? lerp(a, b, *weight.tensor) : lerp(a, b, weight.scalar));
            }),
      entry(
          "lerp_(Tensor input, Tensor end, Scalar weight)",
          [](const Tensor& a, const Tensor& b, Scalar weight) -> Tensor { return lerp_(a, b, weight); }, kMethod),
      entry("addcmul(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1, Tensor out=None)",
            [](const Tensor& x, const Tensor& a, const Tensor& b, Scalar value, const Tensor& out) {
              return into("addcmul", out, addcmul(x, a, b, value));
            }),
      entry(
          "addcmul_(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1)",
          [](const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) -> Tensor {
            return addcmul_(x, a, b, value);
          },
          kMethod),
      entry("addcdiv(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1, Tensor out=None)",
            [](const Tensor& x, const Tensor& a, const Tensor& b, Scalar value, const Tensor& out) {
              return into("addcdiv", out, addcdiv(x, a, b, value));
            }),
      entry(
          "addcdiv_(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1)",
          [](const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) -> Tensor {
            return addcdiv_(x, a, b, value);
          },
          kMethod),
  };
  static const auto table = [] {
    std::vector<Entry> wanted;
    for (const Entry& e : all)
      if (is_wanted(e)) wanted.push_back(e);
    return wanted;
  }();
  return table;
}

}  // namespace tercel::python
