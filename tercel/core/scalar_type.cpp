#include "tercel/core/scalar_type.h"

#include <string>

#include "tercel/core/dtype_words.h"

namespace tercel {

namespace {

struct Name {
  ScalarType type;
  std::string_view text, word, cpp, cpp_alias;
};

constexpr Name kNames[] = {
    {kUInt8, "uint8", "Byte", "unsigned char", "uint8_t"},
    {kInt8, "int8", "Char", "signed char", "int8_t"},
    {kInt16, "int16", "Short", "short int", "int16_t"},
    {kInt32, "int32", "Int", "int", "int"},
    {kInt64, "int64", "Long", "long int", "int64_t"},
    {kFloat16, "float16", "Half", "c10::Half", "at::Half"},
    {kFloat32, "float32", "Float", "float", "float"},
    {kFloat64, "float64", "Double", "double", "double"},
    {kBool, "bool", "Bool", "bool", "bool"},
    {kBFloat16, "bfloat16", "BFloat16", "c10::BFloat16", "at::BFloat16"},
    {kUInt16, "uint16", "UInt16", "short unsigned int", "uint16_t"},
    {kUInt32, "uint32", "UInt32", "unsigned int", "uint32_t"},
    {kUInt64, "uint64", "UInt64", "long unsigned int", "uint64_t"},
    {kComplex64, "complex64", "ComplexFloat", "c10::complex<float>", "c10::complex<float>"},
    {kComplex128, "complex128", "ComplexDouble", "c10::complex<double>", "c10::complex<double>"},
};
constexpr Name kNoName = {ScalarType::Undefined, "undefined", "Undefined", "undefined", "undefined"};

const Name& name_of(ScalarType t) {
  for (const Name& name : kNames)
    if (name.type == t) return name;
  return kNoName;
}

/** The signed type that can represent both; uint64 has none and gives float64. */
ScalarType promote_signs(ScalarType without, ScalarType with) {
  if (item_size(with) > item_size(without)) return with;
  switch (item_size(without)) {
    case 1: return kInt16;
    case 2: return kInt32;
    case 4: return kInt64;
    default: return kFloat64;
  }
}

}  // namespace

std::string_view to_string(ScalarType t) { return name_of(t).text; }
std::string_view scalar_type_word(ScalarType t) { return name_of(t).word; }
std::string_view cpp_type_name(ScalarType t) { return name_of(t).cpp; }
std::string_view cpp_type_alias(ScalarType t) { return name_of(t).cpp_alias; }

ScalarType parse_scalar_type(std::string_view text) {
  for (const Name& name : kNames)
    if (name.text == text) return name.type;
  std::string known;
  for (const Name& name : kNames) known.append(known.empty() ? "" : ", ").append(name.text);
  throw_error<RuntimeError>({"unknown dtype '", text, "': expected one of ", known});
}

ScalarType promote_types(ScalarType a, ScalarType b) {
  TERCEL_CHECK(a != ScalarType::Undefined && b != ScalarType::Undefined, RuntimeError,
               "promote_types: a dtype is undefined");
  if (a == b) return a;
  const TypeCategory ca = category_of(a), cb = category_of(b);
  if (ca != cb) {
    const ScalarType higher = ca > cb ? a : b, lower = ca > cb ? b : a;
    return is_complex(higher) && lower == kFloat64 ? kComplex128 : higher;
  }
  if (ca == TypeCategory::Integral && is_unsigned(a) != is_unsigned(b))
    return promote_signs(is_unsigned(a) ? a : b, is_unsigned(a) ? b : a);
  if (item_size(a) != item_size(b)) return item_size(a) > item_size(b) ? a : b;
  // Same size, different type: float16 with bfloat16. Neither holds the other.
  return kFloat32;
}

bool can_cast(ScalarType from, ScalarType to) {
  if (from == ScalarType::Undefined || to == ScalarType::Undefined) return false;
  const TypeCategory cf = category_of(from), ct = category_of(to);
  if (ct == TypeCategory::Bool) return cf == TypeCategory::Bool;
  return cf <= ct;
}

}  // namespace tercel
