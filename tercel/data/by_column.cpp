#include <algorithm>
#include <cmath>
#include <optional>

#include "tercel/data/by_column_impl.h"
#include "tercel/data/text_number_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/suggest.h"

namespace tercel::data {

namespace {

struct Entry {
  std::string_view column;  // empty: all
  std::string_view number;
};

/** The last '=' separates: names of columns may have one. */
Entry split(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos) return {{}, text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/** parse(text, number) tells whether the text is such a number; `wanted` are the forms that are expected. */
template <class T, class Parse>
std::vector<T> by_column(const std::vector<std::string>& texts, Span<std::string_view> names, T otherwise,
                         std::string_view owner, std::string_view option, std::string_view wanted, Parse parse) {
  std::optional<T> all;
  std::vector<std::optional<T>> own(names.size());
  for (const std::string& text : texts) {
    const Entry entry = split(text);
    T value = 0;
    TERCEL_CHECK(parse(entry.number, value), ConfigError, "[", owner, "] option '", option, "': expected ", wanted,
                 ", found '", printable(text), "'");
    std::optional<T>* place = &all;
    if (entry.number.size() != text.size()) {
      const auto* const found = std::find(names.begin(), names.end(), entry.column);
      if (found == names.end()) fail_column(owner, option, entry.column, names);
      place = &own[static_cast<size_t>(found - names.begin())];
    }
    TERCEL_CHECK(!place->has_value(), ConfigError, "[", owner, "] option '", option, "': expected one number for ",
                 place == &all ? "all columns" : str_cat({"column '", printable(entry.column), "'"}), ", found two");
    *place = value;
  }
  std::vector<T> numbers;
  for (const std::optional<T>& one : own) numbers.push_back(one.value_or(all.value_or(otherwise)));
  return numbers;
}

}  // namespace

void fail_column(std::string_view owner, std::string_view option, std::string_view name, Span<std::string_view> names) {
  throw_error<ConfigError>({"[", owner, "] option '", option, "': expected one of the columns it can be for, found '",
                            printable(name), "'", known_names(name, names)});
}

std::vector<int64_t> numbers_by_column(const std::vector<std::string>& texts, Span<std::string_view> names,
                                       int64_t otherwise, int64_t least, std::string_view owner,
                                       std::string_view option) {
  return by_column(texts, names, otherwise, owner, option, str_cat({"N or column=N with N at least ", least}),
                   [&](std::string_view text, int64_t& value) { return parse_integer(text, value) && value >= least; });
}

std::vector<double> values_by_column(const std::vector<std::string>& texts, Span<std::string_view> names,
                                     double otherwise, std::string_view owner, std::string_view option) {
  return by_column(
      texts, names, otherwise, owner, option, "X or column=X with a finite number X",
      [](std::string_view text, double& value) { return parse_number(text, value) && std::isfinite(value); });
}

bool names_column(const std::vector<std::string>& texts, std::string_view column) {
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
    return text.size() > column.size() && text[column.size()] == '=' && split(text).column == column;
  });
}

}  // namespace tercel::data
