// Elementwise operations in families, generated from the library's lists of functors.
#include <algorithm>
#include <string>

#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/ops/common/tensor_iterator_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/binary_ops.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/elementwise/unary_ops.h"
#include "tercel/ops/special/special.h"
#include "tercel/ops/special/special_binary_ops.h"
#include "tercel/ops/special/special_unary_ops.h"

namespace tercel::python {

namespace {

/** Operations that refuse an `out` of another dtype even if the result could be cast. */
constexpr std::string_view kSameDtype[] = {"ceil", "floor", "frac", "neg", "round", "sgn", "sign", "trunc"};

void check_unary_out(const char* op, const Tensor& out, const Tensor& x) {
  const bool same = std::find(std::begin(kSameDtype), std::end(kSameDtype), op) != std::end(kSameDtype);
  TERCEL_CHECK(!same || out.dtype() == x.dtype(), RuntimeError, "Found dtype ", legacy_name(out.dtype()),
               " but expected ", legacy_name(x.dtype()));
}

#define TERCEL_PREDICATE_ENTRY(name, Functor)            \
  entry(                                                 \
      #name "(Tensor input, *, Tensor out=None)",        \
      [](const Tensor& x, const Tensor& out) -> Tensor { \
        if (!out.defined()) [[likely]]                   \
          return name(x);                                \
        check_unary_out(#name, out, x);                  \
        return name##_out(out, x);                       \
      },                                                 \
      kBoth | kCoo),
#define TERCEL_UNARY_ENTRIES(name, Functor) \
  TERCEL_PREDICATE_ENTRY(name, Functor)     \
  entry(                                    \
      #name "_(Tensor input)", [](const Tensor& x) -> Tensor { return name##_(x); }, kBoth | kCoo),

/** The operands of an operation that may be numbers, and the name of the second. */
struct BinarySignature {
  enum class First : uint8_t { Tensor, Number, Either };

  const char* name;
  const char* second = "other";
  const char* second_type = "Tensor|Scalar";
  First first = First::Tensor;
};
constexpr BinarySignature kPlainSignature = {nullptr};
constexpr BinarySignature kBinarySignatures[] = {
    {.name = "pow", .second = "exponent", .first = BinarySignature::First::Number},
    {.name = "remainder", .first = BinarySignature::First::Number},
    {.name = "bitwise_and", .first = BinarySignature::First::Number},
    {.name = "bitwise_or", .first = BinarySignature::First::Number},
    {.name = "bitwise_xor", .first = BinarySignature::First::Number},
    {.name = "bitwise_left_shift", .first = BinarySignature::First::Number},
    {.name = "bitwise_right_shift", .first = BinarySignature::First::Number},
    {.name = "xlogy", .first = BinarySignature::First::Number},
    {.name = "special_xlog1py", .first = BinarySignature::First::Number},
    {.name = "special_zeta", .first = BinarySignature::First::Number},
    {.name = "special_chebyshev_polynomial_t", .second = "n", .first = BinarySignature::First::Number},
    {.name = "special_chebyshev_polynomial_u", .second = "n", .first = BinarySignature::First::Number},
    {.name = "special_chebyshev_polynomial_v", .second = "n", .first = BinarySignature::First::Number},
    {.name = "special_chebyshev_polynomial_w", .second = "n", .first = BinarySignature::First::Number},
    {.name = "special_hermite_polynomial_h", .second = "n", .first = BinarySignature::First::Number},
    {.name = "special_hermite_polynomial_he", .second = "n", .first = BinarySignature::First::Number},
    {.name = "special_laguerre_polynomial_l", .second = "n", .first = BinarySignature::First::Number},
    {.name = "special_legendre_polynomial_p", .second = "n", .first = BinarySignature::First::Number},
    {.name = "special_shifted_chebyshev_polynomial_t", .second = "n", .first = BinarySignature::First::Number},
    {.name = "special_shifted_chebyshev_polynomial_u", .second = "n", .first = BinarySignature::First::Number},
    {.name = "special_shifted_chebyshev_polynomial_v", .second = "n", .first = BinarySignature::First::Number},
    {.name = "special_shifted_chebyshev_polynomial_w", .second = "n", .first = BinarySignature::First::Number},
    {.name = "mul", .first = BinarySignature::First::Either},
    {.name = "div", .first = BinarySignature::First::Either},
    {.name = "floor_divide", .first = BinarySignature::First::Either},
    {.name = "maximum", .second_type = "Tensor"},
    {.name = "minimum", .second_type = "Tensor"},
    {.name = "fmax", .second_type = "Tensor"},
    {.name = "fmin", .second_type = "Tensor"},
    {.name = "atan2", .second_type = "Tensor"},
    {.name = "hypot", .second_type = "Tensor"},
    {.name = "logaddexp", .second_type = "Tensor"},
    {.name = "logaddexp2", .second_type = "Tensor"},
    {.name = "heaviside", .second = "values", .second_type = "Tensor"},
    {.name = "nextafter", .second_type = "Tensor"},
    {.name = "gcd", .second_type = "Tensor"},
    {.name = "lcm", .second_type = "Tensor"},
    {.name = "igamma", .second_type = "Tensor"},
    {.name = "igammac", .second_type = "Tensor"},
    {.name = "logical_and", .second_type = "Tensor"},
    {.name = "logical_or", .second_type = "Tensor"},
    {.name = "logical_xor", .second_type = "Tensor"},
};

const BinarySignature& signature_of(std::string_view name) {
  for (const BinarySignature& signature : kBinarySignatures)
    if (signature.name == name) return signature;
  return kPlainSignature;
}

// The calls of operations with two operands: name_call(a, b, out).
#define TERCEL_BINARY_CALL(name, Functor)                                                            \
  Tensor name##_call(const Tensor& x, const Operand& other, const Tensor& out) {                     \
    if (!out.defined()) [[likely]]                                                                   \
      return other.is_tensor() ? name(x, *other.tensor) : name(x, other.scalar);                     \
    return other.is_tensor() ? name##_out(out, x, *other.tensor) : name##_out(out, x, other.scalar); \
  }                                                                                                  \
  Tensor name##_call(const Operand& x, const Operand& other, const Tensor& out) {                    \
    if (!x.is_tensor() && other.is_tensor() && !out.defined()) return name(x.scalar, *other.tensor); \
    return name##_call(x.as_tensor(), other, out);                                                   \
  }
TERCEL_BINARY_OPS(TERCEL_BINARY_CALL)
TERCEL_SPECIAL_BINARY_OPS(TERCEL_BINARY_CALL)
TERCEL_COMPARE_OPS(TERCEL_BINARY_CALL)
#undef TERCEL_BINARY_CALL

/** The entries of an operation of two operands; their signatures are names that add_entries() completes. */
struct BinaryEntries {
  Entry result, number_first, in_place;
};
#define TERCEL_BINARY_ENTRIES(name, Functor)                                                                      \
  {entry(#name, [](const Tensor& x, Operand other, const Tensor& out) { return name##_call(x, other, out); }),    \
   entry(                                                                                                         \
       #name, [](Operand x, Operand other, const Tensor& out) { return name##_call(x, other, out); }, kFunction), \
   entry(                                                                                                         \
       #name "_",                                                                                                 \
       [](const Tensor& x, Operand other) -> Tensor {                                                             \
         return other.is_tensor() ? name##_(x, *other.tensor) : name##_(x, other.scalar);                         \
       },                                                                                                         \
       kMethod)},

/** A string that lives as long as the table. */
const char* keep(std::string text) { return (new std::string(std::move(text)))->c_str(); }

void add_entries(BinaryEntries op, std::vector<Entry>& table) {
  const BinarySignature& signature = signature_of(op.result.signature);
  const std::string second = str_cat({signature.second_type, " ", signature.second});
  const auto add = [&table](Entry e, std::string_view rest) {
    e.signature = keep(str_cat({e.signature, "(", rest, ")"}));
    table.push_back(e);
  };
  const bool any_two = signature.first == BinarySignature::First::Either;
  const std::string_view name = op.result.signature;
  if (name == "mul" || name == "div" || name == "pow" || name == "floor_divide")
    for (Entry* e : {&op.result, &op.number_first, &op.in_place}) e->flags |= kCoo;
  if (any_two) op.result.flags = kMethod | kCoo;
  add(op.result, str_cat({"Tensor input, ", second, ", *, Tensor out=None"}));
  if (any_two)
    add(op.number_first, str_cat({"Tensor|Scalar input, ", second, ", *, Tensor out=None"}));
  else if (signature.first == BinarySignature::First::Number)
    add(op.number_first, str_cat({"Scalar input, Tensor ", signature.second, ", *, Tensor out=None"}));
  add(op.in_place, str_cat({"Tensor input, ", second}));
}

/** Operations that PyTorch has only in its module `special`, without in-place variants. */
void move_special(std::vector<Entry>& table) {
  std::vector<Entry> kept;
  for (Entry e : table) {
    const std::string_view text(e.signature);
    const std::string_view name = text.substr(0, text.find('('));
    const bool in_place = name.back() == '_';
    const std::string_view base = in_place ? name.substr(0, name.size() - 1) : name;
    const bool unprefixed = base == "i0e" || base == "i1" || base == "i1e";
    if (unprefixed || base.starts_with("special_")) {
      if (in_place) continue;
      if (unprefixed) e.signature = keep(str_cat({"special_", text}));
      e.flags = kSpecial;
    }
    kept.push_back(e);
  }
  table = std::move(kept);
}

bool is_one(const Scalar& s) { return s.category() == TypeCategory::Integral && s.to_int64() == 1; }
/** add and sub, whose alpha is not in the lists. */
#define TERCEL_SCALED_ENTRIES(name)                                                                              \
  entry(                                                                                                         \
      #name "(Tensor input, Tensor|Scalar other, *, Scalar alpha=1, Tensor out=None)",                           \
      [](const Tensor& x, Operand other, Scalar alpha, const Tensor& out) -> Tensor {                            \
        return is_one(alpha) ? name##_call(x, other, out) : into(#name, out, name(x, other.as_tensor(), alpha)); \
      },                                                                                                         \
      kMethod | kCoo),                                                                                           \
      entry(                                                                                                     \
          #name "(Tensor|Scalar input, Tensor|Scalar other, *, Scalar alpha=1, Tensor out=None)",                \
          [](Operand x, Operand other, Scalar alpha, const Tensor& out) -> Tensor {                              \
            return is_one(alpha) ? name##_call(x, other, out)                                                    \
                                 : into(#name, out, name(x.as_tensor(), other.as_tensor(), alpha));              \
          },                                                                                                     \
          kFunction | kCoo),                                                                                     \
      entry(                                                                                                     \
          #name "_(Tensor input, Tensor|Scalar other, *, Scalar alpha=1)",                                       \
          [](const Tensor& x, Operand other, Scalar alpha) -> Tensor {                                           \
            if (is_one(alpha)) return other.is_tensor() ? name##_(x, *other.tensor) : name##_(x, other.scalar);  \
            return name##_(x, other.as_tensor(), alpha);                                                         \
          },                                                                                                     \
          kMethod | kCoo)

std::vector<Entry> family_entries() {
  // clang-format off
  const Entry unary[] = {
      TERCEL_SCALED_ENTRIES(add),
      TERCEL_SCALED_ENTRIES(sub),
      TERCEL_UNARY_OPS(TERCEL_UNARY_ENTRIES)
      TERCEL_SPECIAL_UNARY_OPS(TERCEL_UNARY_ENTRIES)
      TERCEL_UNARY_PREDICATES(TERCEL_PREDICATE_ENTRY)
      TERCEL_UNARY_ENTRIES(sgn, )
      TERCEL_UNARY_ENTRIES(deg2rad, )
      TERCEL_UNARY_ENTRIES(rad2deg, )
  };
  const BinaryEntries binary[] = {
      TERCEL_BINARY_OPS(TERCEL_BINARY_ENTRIES)
      TERCEL_SPECIAL_BINARY_OPS(TERCEL_BINARY_ENTRIES)
      TERCEL_COMPARE_OPS(TERCEL_BINARY_ENTRIES)
  };
  // clang-format on
  std::vector<Entry> table(std::begin(unary), std::end(unary));
  for (const BinaryEntries& op : binary) {
    const std::string_view name(op.result.signature);
    if (name != "add" && name != "sub") add_entries(op, table);
  }
  move_special(table);
  return table;
}

}  // namespace

Span<Entry> elementwise_ops() {
  static const auto table = family_entries();
  return table;
}

}  // namespace tercel::python
