// Options of layers, optimizers, readers and subcommands: a struct, and one list of its fields.
//
//   struct MultiCrossOptions {
//     int64_t num_layers = 3;
//     int64_t projection_dim = 0;
//     static constexpr auto fields() {
//       return option_list(
//           option_field<&MultiCrossOptions::num_layers>("num_layers", "number of cross layers", at_least(1)),
//           option_field<&MultiCrossOptions::projection_dim>("projection_dim", "rank, 0 for full", at_least(0)));
//     }
//   };
//
// JSON input and output (options_impl.h), "--set solver.lr=0.1", help, flags and error messages come from that list.
// Fields are bool, int64_t, uint64_t, double, std::string, enums with enum_names (enum_names.h), option structs, and
// std::vector of these (with Flag for bool; pairs of a string and a value also as {"auc": 0.8}): plain data, in tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel {

/** Constraints on a value, combined with &. For a list they apply to every element. */
struct OptionRules {
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool above_minimum = false;  // the minimum itself is out
  bool below_maximum = false;  // the maximum itself is out
  bool required = false;       // JSON must have it; a string or list must not be empty

  friend constexpr OptionRules operator&(const OptionRules& a, const OptionRules& b) {
    OptionRules both = a;
    if (b.minimum > both.minimum) both.minimum = b.minimum, both.above_minimum = b.above_minimum;
    if (b.maximum < both.maximum) both.maximum = b.maximum, both.below_maximum = b.below_maximum;
    both.required = a.required || b.required;
    return both;
  }
};
/** Bounds of a number, and whether it is required. */
constexpr OptionRules at_least(double minimum) { return {.minimum = minimum}; }
constexpr OptionRules above(double minimum) { return {.minimum = minimum, .above_minimum = true}; }
constexpr OptionRules at_most(double maximum) { return {.maximum = maximum}; }
constexpr OptionRules below(double maximum) { return {.maximum = maximum, .below_maximum = true}; }
constexpr OptionRules required() { return {.required = true}; }

/** A struct with a static fields(). */
template <class T>
concept OptionStruct = std::is_class_v<T> && requires {
  T::fields().size();
};

/** A bool in a list: elements of std::vector<bool> have no address. */
struct Flag {
  bool value = false;
  friend bool operator==(const Flag&, const Flag&) = default;
};

enum class OptionKind : uint8_t { Bool, Int, UInt, Double, String, Enum, List, Struct };

struct OptionField;
struct OptionTable {
  const OptionField* fields = nullptr;
  size_t count = 0;

  const OptionField* begin() const { return fields; }
  const OptionField* end() const;
};

/** A field's type as plain data. */
struct OptionType {
  struct List {
    const OptionType* element = nullptr;
    size_t (*size)(const void* list) = nullptr;
    void (*resize)(void* list, size_t size) = nullptr;
    void* (*at)(void* list, size_t index) = nullptr;
  };
  struct Enum {
    Span<std::string_view> names;
    std::string_view (*get)(const void* value) = nullptr;
    bool (*set)(void* value, std::string_view name) = nullptr;
  };

  OptionKind kind = OptionKind::Bool;
  Enum enumeration;                   // Enum
  List list;                          // List
  OptionTable (*nested)() = nullptr;  // Struct
};

/** A field as plain data. */
struct OptionField {
  std::string_view name;
  std::string_view help;
  const OptionType* type = nullptr;
  OptionRules rules;
  /** The member inside an object of the struct. */
  void* (*locate)(void* object) = nullptr;
};

inline const OptionField* OptionTable::end() const { return fields + count; }  ///< past the last field

/** The fields of an option struct. */
template <OptionStruct S>
OptionTable option_table();

namespace detail {

template <class T>
struct ListElement {
  using type = void;
};
template <class T>
struct ListElement<std::vector<T>> {
  using type = T;
};

template <NamedEnum E>
constexpr auto name_list() {
  constexpr auto entries = enum_names(E{});
  std::array<std::string_view, entries.size()> names;
  for (size_t i = 0; i < entries.size(); ++i) names[i] = entries[i].name;
  return names;
}
template <NamedEnum E>
inline constexpr auto kNameList = name_list<E>();

template <class T>
constexpr OptionType make_option_type();
template <class T>
inline constexpr OptionType kOptionType = make_option_type<T>();

template <class T>
constexpr OptionType make_option_type() {
  using Element = typename ListElement<T>::type;
  OptionType type;
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, Flag>) {
    type.kind = OptionKind::Bool;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    type.kind = OptionKind::Int;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    type.kind = OptionKind::UInt;
  } else if constexpr (std::is_same_v<T, double>) {
    type.kind = OptionKind::Double;
  } else if constexpr (std::is_same_v<T, std::string>) {
    type.kind = OptionKind::String;
  } else if constexpr (NamedEnum<T>) {
    type.kind = OptionKind::Enum;
    type.enumeration.names = kNameList<T>;
    type.enumeration.get = [](const void* value) { return to_string(*static_cast<const T*>(value)); };
    type.enumeration.set = [](void* value, std::string_view name) { return parse_enum(name, *static_cast<T*>(value)); };
  } else if constexpr (OptionStruct<T>) {
    type.kind = OptionKind::Struct;
    type.nested = &option_table<T>;
  } else if constexpr (!std::is_void_v<Element>) {
    static_assert(!std::is_same_v<Element, bool>, "a list of flags is a std::vector<Flag>");
    type.kind = OptionKind::List;
    type.list.element = &kOptionType<Element>;
    type.list.size = [](const void* list) { return static_cast<const T*>(list)->size(); };
    type.list.resize = [](void* list, size_t size) { static_cast<T*>(list)->resize(size); };
    type.list.at = [](void* list, size_t index) -> void* { return &(*static_cast<T*>(list))[index]; };
  } else {
    static_assert(std::is_void_v<T>,
                  "an option is bool, int64_t, uint64_t, double, std::string, an enum, a struct or a list");
  }
  return type;
}

template <auto Member>
struct MemberOf;
template <class S, class T, T S::*Member>
struct MemberOf<Member> {
  using type = T;
  static void* locate(void* object) { return &(static_cast<S*>(object)->*Member); }
};

template <class S, class Base, size_t I>
void* locate_inherited(void* object) {
  return Base::fields()[I].locate(static_cast<Base*>(static_cast<S*>(object)));
}

template <class Part>
inline constexpr size_t kOptionCount = 1;
template <size_t N>
inline constexpr size_t kOptionCount<std::array<OptionField, N>> = N;

constexpr OptionField* append_options(OptionField* end, const OptionField& field) {
  *end = field;
  return end + 1;
}
template <size_t N>
constexpr OptionField* append_options(OptionField* end, const std::array<OptionField, N>& fields) {
  for (const OptionField& field : fields) *end++ = field;
  return end;
}

TERCEL_API void set_option(OptionTable table, void* options, std::string_view owner, std::string_view name,
                           std::string_view text);
TERCEL_API void check_options(OptionTable table, const void* options, std::string_view owner);

}  // namespace detail

/**
 * One entry of fields(): name, help without a capital or full stop, rules. Member: &S::member of the struct S that
 * lists it, or of its first base.
 */
template <auto Member, class... Rules>
constexpr OptionField option_field(std::string_view name, std::string_view help, const Rules&... rules) {
  using Of = detail::MemberOf<Member>;
  return {name, help, &detail::kOptionType<typename Of::type>, (OptionRules{} & ... & rules), &Of::locate};
}

/** What fields() returns: of entries, and of the fields() of the first base. */
template <class... Parts>
constexpr auto option_list(const Parts&... parts) {
  std::array<OptionField, (detail::kOptionCount<Parts> + ... + 0)> list{};
  [[maybe_unused]] OptionField* end = list.data();
  ((end = detail::append_options(end, parts)), ...);
  return list;
}

/** The fields() of a base that is not the first one of S. */
template <class S, class Base>
constexpr auto inherited_options() {
  auto list = Base::fields();
  [&]<size_t... I>(std::index_sequence<I...>) { ((list[I].locate = &detail::locate_inherited<S, Base, I>), ...); }
  (std::make_index_sequence<list.size()>());
  return list;
}

/** The table of a struct's fields. */
template <OptionStruct S>
OptionTable option_table() {
  static constexpr auto kFields = S::fields();
  return {kFields.data(), kFields.size()};
}

/** Names of all fields; those of nested structs with dots, "solver.lr". */
TERCEL_API std::vector<std::string> option_names(OptionTable table);

/** A field's value as text that set_option accepts. */
TERCEL_API std::string option_text(const OptionField& field, const void* options);

/** "integer, at least 1", "sum|mean", "list of numbers". */
TERCEL_API std::string option_type_text(const OptionField& field);

/**
 * Sets one field from text, as in "--set solver.lr=0.1"; lists are "256,128" or JSON, structs JSON. ConfigError that
 * starts with [owner] for an unknown name, a wrong type or a broken rule.
 */
template <OptionStruct S>
void set_option(S& options, std::string_view owner, std::string_view name, std::string_view text) {
  detail::set_option(option_table<S>(), &options, owner, name, text);
}

/** set_option of "NAME=VALUE". */
template <OptionStruct S>
void set_option(S& options, std::string_view owner, std::string_view assignment);

/** ConfigError that starts with [owner] if a value set by C++ code breaks a rule of its field. */
template <OptionStruct S>
void check_options(const S& options, std::string_view owner) {
  detail::check_options(option_table<S>(), &options, owner);
}

namespace detail {
/** Name and value of "NAME=VALUE"; ConfigError if there is no name or no equals sign. */
TERCEL_API std::pair<std::string_view, std::string_view> split_assignment(std::string_view owner,
                                                                          std::string_view assignment);
}  // namespace detail
/** Sets one field from "name=value"; ConfigError that starts with [owner]. */
template <OptionStruct S>
void set_option(S& options, std::string_view owner, std::string_view assignment) {
  const auto [name, text] = detail::split_assignment(owner, assignment);
  set_option(options, owner, name, text);
}

}  // namespace tercel
