// Names of enum values, listed once beside the enum; parsing, printing and error messages use the list.
//
//   enum class Combiner : uint8_t { Sum, Mean };
//   constexpr auto enum_names(Combiner) {
//     return std::to_array<EnumName<Combiner>>({{Combiner::Sum, "sum"}, {Combiner::Mean, "mean"}});
//   }
//
// A value may have further names after its first: they are accepted as input and never printed.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <type_traits>

#include "tercel/util/error.h"
#include "tercel/util/export.h"
#include "tercel/util/suggest.h"

namespace tercel {

template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) {
  enum_names(e).begin()->name;
};

/** The value's first name; "" if it is not in the list. */
template <NamedEnum E>
constexpr std::string_view to_string(E value) noexcept {
  for (const auto& entry : enum_names(E{}))
    if (entry.value == value) return entry.name;
  return {};
}

/** Sets the value with exactly this name; returns false and changes nothing if there is none. */
template <NamedEnum E>
constexpr bool parse_enum(std::string_view text, E& out) noexcept {
  for (const auto& entry : enum_names(E{})) {
    if (entry.name == text) {
      out = entry.value;
      return true;
    }
  }
  return false;
}

namespace detail {
[[noreturn]] TERCEL_API void unknown_name(std::string_view what, std::string_view text, Span<std::string_view> known);
}

/** The value with this name; ConfigError "unknown WHAT 'text'; did you mean ...; known: ..." if there is none. */
template <NamedEnum E>
E parse_enum_or_throw(std::string_view what, std::string_view text) {
  E value{};
  if (parse_enum(text, value)) return value;
  constexpr auto names = enum_names(E{});
  std::array<std::string_view, names.size()> known;
  for (size_t i = 0; i < names.size(); ++i) known[i] = names[i].name;
  detail::unknown_name(what, text, known);
}

}  // namespace tercel
