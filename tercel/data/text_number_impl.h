// Numbers in text. Private.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace tercel::data {

/** A decimal number in the whole text, with a sign, fraction and exponent if need be; "inf" and "nan" are numbers too.
 */
inline bool parse_number(std::string_view text, double& out) {
  const char* begin = text.data();
  const char* const end = begin + text.size();
  constexpr std::ptrdiff_t kExactDigits = 15;
  if (begin != end && end - begin <= kExactDigits) {
    const bool negative = *begin == '-';
    const char* at = begin + (negative ? 1 : 0);
    int64_t value = 0;
    bool digits = at != end;
    for (; at != end && digits; ++at) {
      digits = *at >= '0' && *at <= '9';
      value = value * 10 + (*at - '0');
    }
    if (digits) {
      out = static_cast<double>(negative ? -value : value);
      return true;
    }
  }
  if (end - begin > 1 && *begin == '+' && begin[1] != '-') ++begin;
  const auto [stop, error] = std::from_chars(begin, end, out);
  return error == std::errc() && stop == end;
}

/** A whole number in the whole text. */
inline bool parse_integer(std::string_view text, int64_t& out) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && stop == text.data() + text.size();
}

}  // namespace tercel::data
