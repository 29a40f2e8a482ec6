#include "tercel/util/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/options_impl.h"

namespace tercel {

namespace {

/** Position of a value, for messages: "[train] option 'solver.lr'". */
struct Place {
  std::string_view owner;
  std::string path;

  Place inside(std::string_view name) const {
    return {owner, path.empty() ? std::string(name) : path + "." + std::string(name)};
  }
  Place element(size_t index) const { return {owner, path + "[" + std::to_string(index) + "]"}; }
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw_error<ConfigError>({"[", printable(owner), "] ",
                              path.empty() ? std::string("options") : "option '" + printable(path) + "'", ": expected ",
                              expected, ", found ", found});
  }
};

const char* kind_text(OptionKind kind) {
  switch (kind) {
    case OptionKind::Bool: return "true or false";
    case OptionKind::Int: return "an integer";
    case OptionKind::UInt: return "an integer that is not negative";
    case OptionKind::Double: return "a number";
    case OptionKind::String: return "a string";
    case OptionKind::Enum: return "a name";
    case OptionKind::List: return "a list";
    case OptionKind::Struct: return "an object";
  }
  return "";
}

std::string one_of(Span<std::string_view> names, std::string_view separator) {
  std::string out;
  for (const std::string_view name : names) {
    if (!out.empty()) out += separator;
    out += name;
  }
  return out;
}

std::string rules_text(const OptionRules& rules) {
  std::string out;
  if (std::isfinite(rules.minimum)) out = (rules.above_minimum ? "above " : "at least ") + format_double(rules.minimum);
  if (std::isfinite(rules.maximum)) {
    if (!out.empty()) out += " and ";
    out += (rules.below_maximum ? "below " : "at most ") + format_double(rules.maximum);
  }
  return out;
}

bool fulfils(double value, const OptionRules& rules) {
  return (rules.above_minimum ? value > rules.minimum : value >= rules.minimum) &&
         (rules.below_maximum ? value < rules.maximum : value <= rules.maximum);
}

void check_number(double value, const std::string& text, const OptionRules& rules, const Place& place) {
  if (!fulfils(value, rules)) place.fail(rules_text(rules), text);
}

// ---- checking

void check_value(const OptionType& type, void* value, const OptionRules& rules, const Place& place);

void check_fields(OptionTable table, void* options, const Place& place) {
  for (const OptionField& field : table)
    check_value(*field.type, field.locate(options), field.rules, place.inside(field.name));
}

void check_value(const OptionType& type, void* value, const OptionRules& rules, const Place& place) {
  switch (type.kind) {
    case OptionKind::Int: {
      const int64_t number = *static_cast<int64_t*>(value);
      check_number(static_cast<double>(number), std::to_string(number), rules, place);
      break;
    }
    case OptionKind::UInt: {
      const uint64_t number = *static_cast<uint64_t*>(value);
      check_number(static_cast<double>(number), std::to_string(number), rules, place);
      break;
    }
    case OptionKind::Double: {
      const double number = *static_cast<double*>(value);
      if (!std::isfinite(number)) place.fail("a finite number", format_double(number));
      check_number(number, format_double(number), rules, place);
      break;
    }
    case OptionKind::String: {
      const auto& text = *static_cast<std::string*>(value);
      if (rules.required && text.empty()) place.fail("a string that is not empty", "an empty one");
      if (!is_utf8(text)) place.fail("a string in UTF-8", "\"" + printable(text) + "\"");
      break;
    }
    case OptionKind::Enum:
      if (type.enumeration.get(value).empty())
        place.fail("one of " + one_of(type.enumeration.names, ", "), "another value");
      break;
    case OptionKind::List: {
      const size_t size = type.list.size(value);
      if (rules.required && size == 0) place.fail("a list that is not empty", "an empty one");
      for (size_t i = 0; i < size; ++i)
        check_value(*type.list.element, type.list.at(value, i), rules, place.element(i));
      break;
    }
    case OptionKind::Struct: check_fields(type.nested(), value, place); break;
    case OptionKind::Bool: break;
  }
}

// ---- reading

[[noreturn]] void fail_unknown(OptionTable table, std::string_view key, const Place& place,
                               Span<std::string_view> others) {
  std::vector<std::string_view> known;
  for (const OptionField& field : table) known.push_back(field.name);
  for (const std::string_view name : others) known.push_back(name);
  throw_error<ConfigError>({"[", printable(place.owner), "] unknown option '", printable(place.inside(key).path), "'",
                            known_names(key, known)});
}

int64_t read_int(const Json& json, const Place& place) {
  if (json.is_number_unsigned()) {
    const auto number = json.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      place.fail("an integer of 64 bits", describe_json(json));
    return static_cast<int64_t>(number);
  }
  if (json.is_number_integer()) return json.get<int64_t>();
  // 1e6 is accepted as an integer.
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (json.is_number_float()) {
    const auto number = json.get<double>();
    if (std::abs(number) <= kExact && number == std::floor(number)) return static_cast<int64_t>(number);
    if (!std::isfinite(number)) place.fail(kind_text(OptionKind::Int), format_double(number));
    if (std::abs(number) > kExact) place.fail(kind_text(OptionKind::Int), describe_json(json) + ", which is too large");
  }
  place.fail(kind_text(OptionKind::Int), describe_json(json));
}

uint64_t read_uint(const Json& json, const Place& place) {
  if (json.is_number_unsigned()) return json.get<uint64_t>();
  if (!json.is_number()) place.fail(kind_text(OptionKind::UInt), describe_json(json));
  const int64_t number = read_int(json, place);
  if (number < 0) place.fail(kind_text(OptionKind::UInt), describe_json(json));
  return static_cast<uint64_t>(number);
}

/** Whether elements of a list are pairs of a name and a value: such a list may be written as an object. */
bool is_list_of_pairs(const OptionType& type) {
  if (type.kind != OptionKind::List || type.list.element->kind != OptionKind::Struct) return false;
  const OptionTable table = type.list.element->nested();
  return table.count == 2 && table.fields[0].type->kind == OptionKind::String;
}

/** {"auc": 0.8} as [{"metric": "auc", "value": 0.8}]. */
Json list_of_pairs(const Json& object, const OptionType& type) {
  const OptionTable table = type.list.element->nested();
  Json list = Json::array();
  for (const auto& [key, value] : object.items())
    list.push_back({{std::string(table.fields[0].name), key}, {std::string(table.fields[1].name), value}});
  return list;
}

void read_fields(const Json& json, OptionTable table, void* options, const Place& place, Span<std::string_view> others);

void read_value(const Json& json, const OptionType& type, void* value, const OptionRules& rules, const Place& place) {
  const auto expect = [&](bool holds) {
    if (!holds) place.fail(kind_text(type.kind), describe_json(json));
  };
  switch (type.kind) {
    case OptionKind::Bool:
      expect(json.is_boolean());
      *static_cast<bool*>(value) = json.get<bool>();
      break;
    case OptionKind::Int: *static_cast<int64_t*>(value) = read_int(json, place); break;
    case OptionKind::UInt: *static_cast<uint64_t*>(value) = read_uint(json, place); break;
    case OptionKind::Double:
      expect(json.is_number());
      *static_cast<double*>(value) = json.get<double>();
      break;
    case OptionKind::String:
      expect(json.is_string());
      *static_cast<std::string*>(value) = json.get<std::string>();
      break;
    case OptionKind::Enum: {
      const std::string choices = "one of " + one_of(type.enumeration.names, ", ");
      if (!json.is_string()) place.fail(choices, describe_json(json));
      const auto& name = json.get_ref<const std::string&>();
      if (!type.enumeration.set(value, name)) {
        const std::string_view near = nearest_name(name, type.enumeration.names);
        place.fail(choices, describe_json(json) + (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?"));
      }
      break;
    }
    case OptionKind::List: {
      if (json.is_object() && is_list_of_pairs(type))
        return read_value(list_of_pairs(json, type), type, value, rules, place);
      // A single value is a list of one, as in HugeCTR's files; in a list of lists it is an error.
      const bool is_list = json.is_array();
      const OptionKind element = type.list.element->kind;
      expect(is_list || (element != OptionKind::List && element != OptionKind::Struct && place.path.back() != ']'));
      const size_t size = is_list ? json.size() : 1;
      type.list.resize(value, 0);
      type.list.resize(value, size);
      for (size_t i = 0; i < size; ++i)
        read_value(is_list ? json[i] : json, *type.list.element, type.list.at(value, i), {},
                   is_list ? place.element(i) : place);
      break;
    }
    case OptionKind::Struct: read_fields(json, type.nested(), value, place, {}); return;
  }
  check_value(type, value, rules, place);
}

const OptionField* find_field(OptionTable table, std::string_view name) {
  const OptionField* const found =
      std::find_if(table.begin(), table.end(), [&](const OptionField& field) { return field.name == name; });
  return found == table.end() ? nullptr : found;
}

void read_fields(const Json& json, OptionTable table, void* options, const Place& place,
                 Span<std::string_view> others) {
  if (!json.is_object()) place.fail("an object", describe_json(json));
  for (const auto& [key, value] : json.items()) {
    if (const OptionField* const field = find_field(table, key))
      read_value(value, *field->type, field->locate(options), field->rules, place.inside(key));
    else if (std::find(others.begin(), others.end(), key) == others.end())
      fail_unknown(table, key, place, others);
  }
  for (const OptionField& field : table)
    if (field.rules.required && !json.contains(field.name))
      place.inside(field.name).fail(kind_text(field.type->kind), "nothing");
}

// ---- text

template <class T>
bool parse_whole(std::string_view text, T& out) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

Json json_from_text(const OptionType& type, std::string_view text, const Place& place) {
  const auto parse = [&] {
    return parse_json(text, "[" + std::string(place.owner) + "] option '" + place.path + "'", JsonErrors::Config);
  };
  switch (type.kind) {
    case OptionKind::Bool:
      if (text == "true" || text == "1") return true;
      if (text == "false" || text == "0") return false;
      break;
    case OptionKind::Int:
    case OptionKind::UInt:
    case OptionKind::Double: {
      int64_t integer = 0;
      uint64_t natural = 0;
      double number = 0;
      if (parse_whole(text, integer)) return integer;
      if (parse_whole(text, natural)) return natural;
      if (parse_whole(text, number) && std::isfinite(number)) return number;
      break;
    }
    case OptionKind::String:
    case OptionKind::Enum: break;
    case OptionKind::List: {
      if (text.starts_with('[') || (text.starts_with('{') && is_list_of_pairs(type))) return parse();
      if (type.list.element->kind == OptionKind::List || type.list.element->kind == OptionKind::Struct) break;
      Json list = Json::array();
      if (text.empty()) return list;
      for (size_t start = 0; start <= text.size();) {
        const size_t end = std::min(text.find(',', start), text.size());
        list.push_back(json_from_text(*type.list.element, text.substr(start, end - start), place));
        start = end + 1;
      }
      return list;
    }
    case OptionKind::Struct:
      if (text.starts_with('{')) return parse();
      break;
  }
  return std::string(text);
}

// ---- writing

Json write_value(const OptionType& type, void* value, const Place& place) {
  switch (type.kind) {
    case OptionKind::Bool: return *static_cast<bool*>(value);
    case OptionKind::Int: return *static_cast<int64_t*>(value);
    case OptionKind::UInt: return *static_cast<uint64_t*>(value);
    case OptionKind::Double: {
      const double number = *static_cast<double*>(value);
      if (!std::isfinite(number)) place.fail("a finite number", format_double(number));
      return number;
    }
    case OptionKind::String: return *static_cast<std::string*>(value);
    case OptionKind::Enum: return std::string(type.enumeration.get(value));
    case OptionKind::List: {
      Json list = Json::array();
      for (size_t i = 0; i < type.list.size(value); ++i)
        list.push_back(write_value(*type.list.element, type.list.at(value, i), place.element(i)));
      return list;
    }
    case OptionKind::Struct: {
      Json object = Json::object();
      for (const OptionField& field : type.nested())
        object[std::string(field.name)] = write_value(*field.type, field.locate(value), place.inside(field.name));
      return object;
    }
  }
  return nullptr;
}

// ---- help

std::string plural_text(const OptionType& type) {
  switch (type.kind) {
    case OptionKind::Bool: return "flags";
    case OptionKind::Int:
    case OptionKind::UInt: return "integers";
    case OptionKind::Double: return "numbers";
    case OptionKind::String: return "strings";
    case OptionKind::Enum: return one_of(type.enumeration.names, "|");
    case OptionKind::List: return "lists of " + plural_text(*type.list.element);
    case OptionKind::Struct: return "objects";
  }
  return "";
}

}  // namespace

std::vector<std::string> option_names(OptionTable table) {
  std::vector<std::string> names;
  for (const OptionField& field : table) {
    if (field.type->kind != OptionKind::Struct) {
      names.emplace_back(field.name);
      continue;
    }
    for (const std::string& inner : option_names(field.type->nested()))
      names.push_back(std::string(field.name) + "." + inner);
  }
  return names;
}

std::string option_text(const OptionField& field, const void* options) {
  void* const value = field.locate(const_cast<void*>(options));
  switch (field.type->kind) {
    case OptionKind::Double: return format_double(*static_cast<double*>(value));
    case OptionKind::String: return *static_cast<std::string*>(value);
    case OptionKind::Enum: return std::string(field.type->enumeration.get(value));
    default: return dump_json_line(write_value(*field.type, value, {"options", std::string(field.name)}));
  }
}

std::string option_type_text(const OptionField& field) {
  const OptionType& type = *field.type;
  std::string out;
  switch (type.kind) {
    case OptionKind::Bool: out = "true|false"; break;
    case OptionKind::Int:
    case OptionKind::UInt: out = "integer"; break;
    case OptionKind::Double: out = "number"; break;
    case OptionKind::String: out = "string"; break;
    case OptionKind::Enum: out = one_of(type.enumeration.names, "|"); break;
    case OptionKind::List: out = "list of " + plural_text(*type.list.element); break;
    case OptionKind::Struct: out = "object"; break;
  }
  if (field.rules.required) out += ", required";
  const std::string rules = rules_text(field.rules);
  return rules.empty() ? out : out + ", " + rules;
}

namespace detail {

std::pair<std::string_view, std::string_view> split_assignment(std::string_view owner, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  TERCEL_CHECK(equals != std::string_view::npos && equals > 0, ConfigError, "[", printable(owner),
               "] expected NAME=VALUE, found '", printable(assignment), "'");
  return {assignment.substr(0, equals), assignment.substr(equals + 1)};
}

void set_option(OptionTable table, void* options, std::string_view owner, std::string_view name,
                std::string_view text) {
  Place place{owner, {}};
  const OptionTable whole = table;
  for (std::string_view rest = name;;) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view key = rest.substr(0, dot);
    const OptionField* const field = find_field(table, key);
    if (field == nullptr) {
      // The name may be that of a nested field: "lr" for "solver.lr".
      if (place.path.empty() && dot == rest.size()) {
        for (const std::string& full : option_names(whole))
          TERCEL_CHECK(!full.ends_with("." + std::string(key)), ConfigError, "[", printable(owner),
                       "] unknown option '", printable(name), "'; did you mean '", full, "'?");
      }
      fail_unknown(table, key, place, {});
    }
    place = place.inside(key);
    void* const value = field->locate(options);
    if (dot == rest.size()) {
      read_value(json_from_text(*field->type, text, place), *field->type, value, field->rules, place);
      return;
    }
    if (field->type->kind != OptionKind::Struct)
      place.fail("no name after it, as it is not an object", "'" + printable(name) + "'");
    table = field->type->nested();
    options = value;
    rest.remove_prefix(dot + 1);
  }
}

void check_options(OptionTable table, const void* options, std::string_view owner) {
  check_fields(table, const_cast<void*>(options), {owner, {}});
}

void read_options(const Json& json, OptionTable table, void* options, std::string_view owner,
                  Span<std::string_view> others) {
  read_fields(json, table, options, {owner, {}}, others);
}

Json write_options(OptionTable table, const void* options) {
  Json object = Json::object();
  for (const OptionField& field : table)
    object[std::string(field.name)] =
        write_value(*field.type, field.locate(const_cast<void*>(options)), {"options", std::string(field.name)});
  return object;
}

}  // namespace detail

}  // namespace tercel
