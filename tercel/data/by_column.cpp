#include <algorithm>
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

}  // namespace

void fail_column(std::string_view owner, std::string_view option, std::string_view name, Span<std::string_view> names) {
  throw_error<ConfigError>({"[", owner, "] option '", option, "': expected one of the columns it can be for, found '",
                            printable(name), "'", known_names(name, names)});
}

std::vector<int64_t> numbers_by_column(const std::vector<std::string>& texts, Span<std::string_view> names,
                                       int64_t otherwise, int64_t least, std::string_view owner,
                                       std::string_view option) {
  std::optional<int64_t> all;
  std::vector<std::optional<int64_t>> own(names.size());
  for (const std::string& text : texts) {
    const auto [column, number] = split(text);
    int64_t value = 0;
    TERCEL_CHECK(parse_integer(number, value) && value >= least, ConfigError, "[", owner, "] option '", option,
                 "': expected N or column=N with N at least ", least, ", found '", printable(text), "'");
    std::optional<int64_t>* place = &all;
    if (number.size() != text.size()) {
      const auto* const found = std::find(names.begin(), names.end(), column);
      if (found == names.end()) fail_column(owner, option, column, names);
      place = &own[static_cast<size_t>(found - names.begin())];
    }
    TERCEL_CHECK(!place->has_value(), ConfigError, "[", owner, "] option '", option, "': expected one number for ",
                 number.size() == text.size() ? "all columns" : str_cat({"column '", printable(column), "'"}),
                 ", found two");
    *place = value;
  }
  std::vector<int64_t> numbers;
  for (const std::optional<int64_t>& one : own) numbers.push_back(one.value_or(all.value_or(otherwise)));
  return numbers;
}

bool names_column(const std::vector<std::string>& texts, std::string_view column) {
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
    return text.size() > column.size() && text[column.size()] == '=' && split(text).column == column;
  });
}

}  // namespace tercel::data
