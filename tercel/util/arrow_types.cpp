#include "tercel/util/arrow_types.h"

#include <array>
#include <string_view>
#include <utility>

#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel {

namespace {

// Schemas of other programs may be nested without end. Of structs, whose numbers of fields may be wrong, none is read.
constexpr int kMostLevels = 4;

std::string_view format_of(const ArrowSchema& field) { return field.format ? field.format : ""; }

std::string_view simple_name(std::string_view format) {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"n", "null"},
      {"b", "bool"},
      {"c", "int8"},
      {"C", "uint8"},
      {"s", "int16"},
      {"S", "uint16"},
      {"i", "int32"},
      {"I", "uint32"},
      {"l", "int64"},
      {"L", "uint64"},
      {"e", "halffloat"},
      {"f", "float"},
      {"g", "double"},
      {"z", "binary"},
      {"Z", "large_binary"},
      {"vz", "binary_view"},
      {"u", "string"},
      {"U", "large_string"},
      {"vu", "string_view"},
      {"tdD", "date32[day]"},
      {"tdm", "date64[ms]"},
      {"tts", "time32[s]"},
      {"ttm", "time32[ms]"},
      {"ttu", "time64[us]"},
      {"ttn", "time64[ns]"},
      {"tDs", "duration[s]"},
      {"tDm", "duration[ms]"},
      {"tDu", "duration[us]"},
      {"tDn", "duration[ns]"},
      {"tiM", "month_interval"},
      {"tiD", "day_time_interval"},
      {"tin", "month_day_nano_interval"},
  });
  for (const auto& [known, name] : kNames)
    if (known == format) return name;
  return {};
}

/** "decimal128(2, 1)" of "d:2,1", or of "d:2,1,128". Empty for another format. */
std::string decimal_name(std::string_view format) {
  if (!format.starts_with("d:")) return {};
  const std::string_view numbers = format.substr(2);
  const size_t first = numbers.find(',');
  if (first == std::string_view::npos) return {};
  const size_t second = numbers.find(',', first + 1);
  const std::string_view bits = second == std::string_view::npos ? "128" : numbers.substr(second + 1);
  const std::string_view scale =
      numbers.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
  return str_cat({"decimal", printable(bits), "(", printable(numbers.substr(0, first)), ", ", printable(scale), ")"});
}

std::string timestamp_name(std::string_view format) {
  if (format.size() < 4 || !format.starts_with("ts") || format[3] != ':') return {};
  const char unit = format[2];
  const std::string_view name = unit == 's' ? "s" : unit == 'm' ? "ms" : unit == 'u' ? "us" : unit == 'n' ? "ns" : "";
  if (name.empty()) return {};
  const std::string_view zone = format.substr(4);
  return str_cat({"timestamp[", name, zone.empty() ? "" : ", tz=", printable(zone), "]"});
}

std::string text_of(const ArrowSchema& field, int level);

/** "<double>": the type of the elements of a list. */
std::string element_text(const ArrowSchema& field, int level) {
  if (field.n_children != 1 || !field.children || !field.children[0] || !field.children[0]->release) return "<?>";
  return level == kMostLevels ? "<...>" : str_cat({"<", text_of(*field.children[0], level + 1), ">"});
}

std::string nested_name(const ArrowSchema& field, int level) {
  const std::string_view format = format_of(field);
  if (format == "+s") return "struct";
  if (format == "+m") return "map";
  if (format == "+r") return "run_end_encoded";
  if (format.starts_with("+ud:")) return "dense_union";
  if (format.starts_with("+us:")) return "sparse_union";
  if (format == "+l") return "list" + element_text(field, level);
  if (format == "+L") return "large_list" + element_text(field, level);
  if (format == "+vl") return "list_view" + element_text(field, level);
  if (format == "+vL") return "large_list_view" + element_text(field, level);
  if (!format.starts_with("+w:")) return {};
  return str_cat({"fixed_size_list", element_text(field, level), "[", printable(format.substr(3)), "]"});
}

std::string text_of(const ArrowSchema& field, int level) {
  const std::string_view format = format_of(field);
  if (field.dictionary && field.dictionary->release && level < kMostLevels) {
    ArrowSchema indices = field;
    indices.dictionary = nullptr;
    return str_cat(
        {"dictionary<values=", text_of(*field.dictionary, level + 1), ", indices=", text_of(indices, level + 1), ">"});
  }
  if (const std::string_view name = simple_name(format); !name.empty()) return std::string(name);
  if (format.starts_with("w:")) return str_cat({"fixed_size_binary[", printable(format.substr(2)), "]"});
  for (std::string name : {decimal_name(format), timestamp_name(format), nested_name(field, level)})
    if (!name.empty()) return name;
  return str_cat({"format '", printable(format), "'"});
}

}  // namespace

std::string arrow_type_text(const ArrowSchema& field) { return text_of(field, 0); }

}  // namespace tercel
