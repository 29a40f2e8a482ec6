// Element types: their names, sizes, categories and promotion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "tercel/util/bfloat16.h"
#include "tercel/util/complex.h"
#include "tercel/util/error.h"
#include "tercel/util/half.h"

namespace tercel {

/** The values are c10's, so that files and interchange formats agree; gaps are c10's other types. */
enum class ScalarType : int8_t {
  UInt8 = 0,
  Int8 = 1,
  Int16 = 2,
  Int32 = 3,
  Int64 = 4,
  Float16 = 5,
  Float32 = 6,
  Float64 = 7,
  Complex64 = 9,
  Complex128 = 10,
  Bool = 11,
  BFloat16 = 15,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
  Undefined = 127,
};

constexpr ScalarType kUInt8 = ScalarType::UInt8;
constexpr ScalarType kInt8 = ScalarType::Int8;
constexpr ScalarType kInt16 = ScalarType::Int16;
constexpr ScalarType kInt32 = ScalarType::Int32;
constexpr ScalarType kInt64 = ScalarType::Int64;
constexpr ScalarType kFloat16 = ScalarType::Float16;
constexpr ScalarType kFloat32 = ScalarType::Float32;
constexpr ScalarType kFloat64 = ScalarType::Float64;
constexpr ScalarType kBool = ScalarType::Bool;
constexpr ScalarType kBFloat16 = ScalarType::BFloat16;
constexpr ScalarType kUInt16 = ScalarType::UInt16;
constexpr ScalarType kUInt32 = ScalarType::UInt32;
constexpr ScalarType kUInt64 = ScalarType::UInt64;
constexpr ScalarType kComplex64 = ScalarType::Complex64;
constexpr ScalarType kComplex128 = ScalarType::Complex128;

/** Categories in promotion order: the higher one decides. */
enum class TypeCategory : int8_t { Bool = 0, Integral = 1, Floating = 2, Complex = 3 };
/** Bytes of an element. */
constexpr size_t item_size(ScalarType t) {
  switch (t) {
    case ScalarType::Bool:
    case ScalarType::UInt8:
    case ScalarType::Int8: return 1;
    case ScalarType::Int16:
    case ScalarType::UInt16:
    case ScalarType::Float16:
    case ScalarType::BFloat16: return 2;
    case ScalarType::Int32:
    case ScalarType::UInt32:
    case ScalarType::Float32: return 4;
    case ScalarType::Int64:
    case ScalarType::UInt64:
    case ScalarType::Float64:
    case ScalarType::Complex64: return 8;
    case ScalarType::Complex128: return 16;
    case ScalarType::Undefined: break;
  }
  return 0;
}
/** The category of a dtype. */
constexpr TypeCategory category_of(ScalarType t) {
  switch (t) {
    case ScalarType::Bool: return TypeCategory::Bool;
    case ScalarType::Float16:
    case ScalarType::BFloat16:
    case ScalarType::Float32:
    case ScalarType::Float64: return TypeCategory::Floating;
    case ScalarType::Complex64:
    case ScalarType::Complex128: return TypeCategory::Complex;
    case ScalarType::UInt8:
    case ScalarType::UInt16:
    case ScalarType::UInt32:
    case ScalarType::UInt64:
    case ScalarType::Int8:
    case ScalarType::Int16:
    case ScalarType::Int32:
    case ScalarType::Int64:
    case ScalarType::Undefined: break;
  }
  return TypeCategory::Integral;
}
/** Whether the dtype is a real floating-point type. */
constexpr bool is_floating(ScalarType t) {
  return t != ScalarType::Undefined && category_of(t) == TypeCategory::Floating;
}
constexpr bool is_complex(ScalarType t) { return t == ScalarType::Complex64 || t == ScalarType::Complex128; }
/** Whether it is floating or complex, so that tensors may require a gradient. */
constexpr bool is_differentiable(ScalarType t) { return is_floating(t) || is_complex(t); }
constexpr bool is_unsigned(ScalarType t) {
  return t == ScalarType::UInt8 || (t >= ScalarType::UInt16 && t <= ScalarType::UInt64);
}
/** The type of a complex number's parts; other types unchanged. */
constexpr ScalarType real_dtype(ScalarType t) {
  return t == ScalarType::Complex64 ? ScalarType::Float32 : (t == ScalarType::Complex128 ? ScalarType::Float64 : t);
}
/** The complex type of at least that width: complex128 for float64 and itself, else complex64. */
constexpr ScalarType complex_dtype(ScalarType t) {
  return t == ScalarType::Float64 || t == ScalarType::Complex128 ? ScalarType::Complex128 : ScalarType::Complex64;
}
/** Whether it is an integer type or, if include_bool, bool. */
constexpr bool is_integral(ScalarType t, bool include_bool) {
  return t != ScalarType::Undefined &&
         (category_of(t) == TypeCategory::Integral || (include_bool && category_of(t) == TypeCategory::Bool));
}

/** "float32", "int64", "bool" ... */
TERCEL_API std::string_view to_string(ScalarType t);
/** The reverse of to_string(); RuntimeError for an unknown name. */
TERCEL_API ScalarType parse_scalar_type(std::string_view name);

/**
 * The type that holds both, by PyTorch's table (u8 + i8 = i16, f16 + bf16 = f32, i64 + f16 = f16, f64 + c64 = c128)
 * and, for uint16 to uint64, which PyTorch does not promote, NumPy's (u16 + i16 = i32, u64 + i64 = f64).
 */
TERCEL_API ScalarType promote_types(ScalarType a, ScalarType b);
/** Whether a result of type `from` may be stored in `to`: not in a lower category, and no number in a bool. */
TERCEL_API bool can_cast(ScalarType from, ScalarType to);
/** The dtype of a C++ type. */
template <class T>
constexpr ScalarType scalar_type_of() = delete;
template <>
constexpr ScalarType scalar_type_of<bool>() {
  return ScalarType::Bool;
}
template <>
constexpr ScalarType scalar_type_of<uint8_t>() {
  return ScalarType::UInt8;
}
template <>
constexpr ScalarType scalar_type_of<int8_t>() {
  return ScalarType::Int8;
}
template <>
constexpr ScalarType scalar_type_of<int16_t>() {
  return ScalarType::Int16;
}
template <>
constexpr ScalarType scalar_type_of<int32_t>() {
  return ScalarType::Int32;
}
template <>
constexpr ScalarType scalar_type_of<int64_t>() {
  return ScalarType::Int64;
}
template <>
constexpr ScalarType scalar_type_of<uint16_t>() {
  return ScalarType::UInt16;
}
template <>
constexpr ScalarType scalar_type_of<uint32_t>() {
  return ScalarType::UInt32;
}
template <>
constexpr ScalarType scalar_type_of<uint64_t>() {
  return ScalarType::UInt64;
}
template <>
constexpr ScalarType scalar_type_of<Half>() {
  return ScalarType::Float16;
}
template <>
constexpr ScalarType scalar_type_of<BFloat16>() {
  return ScalarType::BFloat16;
}
template <>
constexpr ScalarType scalar_type_of<float>() {
  return ScalarType::Float32;
}
template <>
constexpr ScalarType scalar_type_of<double>() {
  return ScalarType::Float64;
}
template <>
constexpr ScalarType scalar_type_of<Complex<float>>() {
  return ScalarType::Complex64;
}
template <>
constexpr ScalarType scalar_type_of<Complex<double>>() {
  return ScalarType::Complex128;
}

/** Calls fn.template operator()<T>() with the C++ type of t; NotImplementedError, starting with `op`, for a type not in
 * the list.
 */
template <class... Ts, class Fn>
decltype(auto) visit_types(std::string_view op, ScalarType t, Fn&& fn) {
  using First = decltype(fn.template operator()<std::tuple_element_t<0, std::tuple<Ts...>>>());
  if constexpr (std::is_void_v<First>) {
    const bool known = ((t == scalar_type_of<Ts>() ? (fn.template operator()<Ts>(), true) : false) || ...);
    TERCEL_CHECK(known, NotImplementedError, op, ": not implemented for dtype ", to_string(t));
  } else {
    First result{};
    const bool known = ((t == scalar_type_of<Ts>() ? (result = fn.template operator()<Ts>(), true) : false) || ...);
    TERCEL_CHECK(known, NotImplementedError, op, ": not implemented for dtype ", to_string(t));
    return result;
  }
}

/** visit_types over every element type. */
template <class Fn>
decltype(auto) visit_all_types(std::string_view op, ScalarType t, Fn&& fn) {
  return visit_types<float, double, int64_t, int32_t, bool, uint8_t, int8_t, int16_t, Half, BFloat16, uint16_t,
                     uint32_t, uint64_t, Complex<float>, Complex<double>>(op, t, static_cast<Fn&&>(fn));
}
/** visit_types over all but complex numbers. */
template <class Fn>
decltype(auto) visit_real_types(std::string_view op, ScalarType t, Fn&& fn) {
  return visit_types<float, double, int64_t, int32_t, bool, uint8_t, int8_t, int16_t, Half, BFloat16, uint16_t,
                     uint32_t, uint64_t>(op, t, static_cast<Fn&&>(fn));
}
/** visit_types over the types that may require a gradient. */
template <class Fn>
decltype(auto) visit_differentiable_types(std::string_view op, ScalarType t, Fn&& fn) {
  return visit_types<float, double, Half, BFloat16, Complex<float>, Complex<double>>(op, t, static_cast<Fn&&>(fn));
}
/** visit_types over the floating types. */
template <class Fn>
decltype(auto) visit_floating_types(std::string_view op, ScalarType t, Fn&& fn) {
  return visit_types<float, double, Half, BFloat16>(op, t, static_cast<Fn&&>(fn));
}
/** visit_types over integers (index types are int32 and int64). */
template <class Fn>
decltype(auto) visit_index_types(std::string_view op, ScalarType t, Fn&& fn) {
  return visit_types<int64_t, int32_t>(op, t, static_cast<Fn&&>(fn));
}

}  // namespace tercel
