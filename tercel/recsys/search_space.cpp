#include "tercel/recsys/search_space.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/philox.h"

namespace tercel::recsys {

namespace {

using Kind = SearchRange::Kind;

constexpr uint64_t kStream = 0x74756e65;  // "tune"

struct NamedKind {
  std::string_view name;
  Kind kind;
};
constexpr NamedKind kKinds[] = {
    {"uniform", Kind::Uniform}, {"log", Kind::Log}, {"int", Kind::Integer}, {"logint", Kind::LogInteger}};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

constexpr bool is_logarithmic(Kind kind) { return kind == Kind::Log || kind == Kind::LogInteger; }
constexpr bool is_integer(Kind kind) { return kind == Kind::Integer || kind == Kind::LogInteger; }

/** Three digits, as a value that people can read is as good; more in a range so narrow that these lie outside. */
std::string short_text(const SearchRange& range, double value) {
  char text[32];
  for (int digits = 3; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    const std::optional<double> read = number(text);
    if (read && *read >= range.low && *read <= range.high) break;
  }
  return text;
}

}  // namespace

SearchRange parse_search(std::string_view text) {
  const auto refuse = [&](const auto&... why) {
    throw_error<ConfigError>({"--search ", printable(text), ": ", why...});
  };
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || text.find('.') > equals || equals + 1 == text.size())
    refuse("expected SECTION.OPTION=VALUES, as in solver.lr=log:0.001:0.1 or solver.batchsize=128,256");
  SearchRange range;
  range.entry = text.substr(0, equals);
  const std::string_view values = text.substr(equals + 1);
  for (const auto& [name, kind] : kKinds) {
    if (!values.starts_with(str_cat({name, ":"}))) continue;
    range.kind = kind;
    const std::vector<std::string> ends = split(values.substr(name.size() + 1), ':');
    const std::optional<double> low = number(ends.front()), high = number(ends.back());
    if (ends.size() != 2 || !low || !high || *low >= *high)
      refuse("expected ", name, ":LOW:HIGH with numbers LOW < HIGH");
    if (is_logarithmic(kind) && *low <= 0) refuse("expected a lower end above 0 for ", name, ", found ", *low);
    if (is_integer(kind) &&
        (*low != std::floor(*low) || *high != std::floor(*high) || std::fabs(*low) > 1e15 || std::fabs(*high) > 1e15))
      refuse("expected integers for ", name);
    range.low = *low;
    range.high = *high;
    return range;
  }
  range.choices = split(values, values.find('|') == std::string_view::npos ? ',' : '|');
  if (std::any_of(range.choices.begin(), range.choices.end(), [](const std::string& c) { return c.empty(); }))
    refuse("expected values, found an empty one");
  return range;
}

std::vector<std::string> draw_trial(Span<SearchRange> ranges, uint64_t seed, int64_t trial) {
  std::vector<std::string> assignments;
  if (trial == 0) return assignments;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const SearchRange& range = ranges[i];
    const PhiloxBlock bits =
        philox4x32({{static_cast<uint32_t>(trial), static_cast<uint32_t>(i), 0, static_cast<uint32_t>(kStream)}}, seed);
    const uint64_t random = random_u64(bits.word[0], bits.word[1]);
    std::string value;
    if (range.kind == Kind::Choice) {
      value = range.choices[uniform_int(random, range.choices.size())];
    } else {
      const double u = uniform_f64(random);
      // Integers have intervals of equal width, [k, k + 1), of which the draw is rounded down.
      const double high = is_integer(range.kind) ? range.high + 1 : range.high;
      double drawn =
          is_logarithmic(range.kind) ? range.low * std::pow(high / range.low, u) : range.low + u * (high - range.low);
      if (is_integer(range.kind)) {
        drawn = std::min(std::floor(drawn), range.high);
        value = std::to_string(static_cast<int64_t>(drawn));
      } else {
        value = short_text(range, std::clamp(drawn, range.low, range.high));
      }
    }
    assignments.push_back(str_cat({range.entry, "=", value}));
  }
  return assignments;
}

}  // namespace tercel::recsys
