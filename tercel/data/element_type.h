// Types of the numbers in columns of other tools' files and tables.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tercel/util/enum_names.h"

namespace tercel::data {

enum class ElementType : uint8_t { Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64 };

constexpr auto enum_names(ElementType) {
  return std::to_array<EnumName<ElementType>>({{ElementType::Bool, "bool"},
                                               {ElementType::I8, "i8"},
                                               {ElementType::I16, "i16"},
                                               {ElementType::I32, "i32"},
                                               {ElementType::I64, "i64"},
                                               {ElementType::U8, "u8"},
                                               {ElementType::U16, "u16"},
                                               {ElementType::U32, "u32"},
                                               {ElementType::U64, "u64"},
                                               {ElementType::F16, "f16"},
                                               {ElementType::F32, "f32"},
                                               {ElementType::F64, "f64"}});
}

/** Whether the numbers are floating point. */
constexpr bool is_float(ElementType type) { return type >= ElementType::F16; }

/** "int64", "float", "list<float>": as Arrow names types. */
inline std::string arrow_type_name(ElementType type, bool list = false) {
  const auto name = [&]() -> std::string {
    switch (type) {
      case ElementType::Bool: return "bool";
      case ElementType::F16: return "halffloat";
      case ElementType::F32: return "float";
      case ElementType::F64: return "double";
      default: break;
    }
    const std::string_view short_name = to_string(type);
    return (short_name[0] == 'u' ? "uint" : "int") + std::string(short_name.substr(1));
  };
  return list ? "list<" + name() + ">" : name();
}

}  // namespace tercel::data
