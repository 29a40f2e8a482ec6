#include "tercel/util/format.h"

#include <array>
#include <charconv>
#include <cmath>

namespace tercel {

namespace {

std::string fixed(double value, int digits) {
  char buffer[400];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, digits);
  return {buffer, end.ptr};
}

std::string two_digits(int64_t value) { return (value < 10 ? "0" : "") + std::to_string(value); }

// Length of the well-formed UTF-8 sequence at the front, 0 if there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                        : (lead & 0xf0) == 0xe0       ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned next = byte(1);
  const bool overlong = (lead == 0xe0 && next < 0xa0) || (lead == 0xf0 && next < 0x90);
  const bool beyond = (lead == 0xed && next >= 0xa0) || (lead == 0xf4 && next >= 0x90);
  return overlong || beyond ? 0 : length;
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  if (bytes > -1024 && bytes < 1024) return std::to_string(bytes) + " B";
  static constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would round to "1024.0".
  while (std::abs(value) >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fixed(value, 1) + " " + kUnits[unit];
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds < 0) return "-" + format_duration(-seconds);
  if (seconds < 999.5e-9) return fixed(seconds * 1e9, 0) + " ns";
  if (seconds < 999.95e-6) return fixed(seconds * 1e6, 1) + " us";
  if (seconds < 999.95e-3) return fixed(seconds * 1e3, 1) + " ms";
  if (seconds < 59.95) return fixed(seconds, 1) + " s";
  if (seconds > 1e15) return "ages";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return std::to_string(whole / 60) + " min " + two_digits(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + two_digits(whole / 60 % 60) + " min";
}

std::string format_clock(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e15) return "--:--:--";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  return two_digits(whole / 3600) + ":" + two_digits(whole / 60 % 60) + ":" + two_digits(whole % 60);
}

std::string format_count(int64_t count) {
  std::string digits = std::to_string(count);
  const size_t sign = count < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > sign + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string format_short(double value) {
  if (!std::isfinite(value)) return "unknown";
  if (value < 0) return "-" + format_short(-value);
  static constexpr std::array kSuffixes = {"", "k", "M", "G", "T"};
  size_t suffix = 0;
  while (value >= 999.5 && suffix + 1 < kSuffixes.size()) {
    value /= 1000;
    ++suffix;
  }
  if (suffix == 0)
    return value == std::floor(value) ? fixed(value, 0) : fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  return fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0) + kSuffixes[suffix];
}

std::string format_double(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end.ptr};
}

namespace {

/** Moves the first character to `out` as printable() shows it. */
void move_printable(std::string_view& text, std::string& out) {
  const size_t length = utf8_length(text);
  const auto byte = static_cast<unsigned char>(text[0]);
  // U+0080 to U+009F, two bytes in UTF-8, are control characters too; U+009B begins what ESC [ begins.
  const bool is_control = length == 2 && byte == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
  if ((length > 1 && !is_control) || (length == 1 && byte >= 0x20 && byte != 0x7f)) {
    out.append(text.substr(0, length));
    text.remove_prefix(length);
    return;
  }
  static constexpr char kHex[] = "0123456789abcdef";
  for (size_t i = 0; i < std::max<size_t>(length, 1); ++i) {
    const auto control = static_cast<unsigned char>(text[i]);
    if (control == '\n') {
      out += "\\n";
    } else if (control == '\t') {
      out += "\\t";
    } else {
      out += "\\x";
      out += kHex[control >> 4];
      out += kHex[control & 15];
    }
  }
  text.remove_prefix(std::max<size_t>(length, 1));
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 512;
  std::string out;
  out.reserve(std::min(text.size(), kLongest));
  while (!text.empty()) {
    if (out.size() >= kLongest) return out + "...";
    move_printable(text, out);
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (text[0] == '\n') {
      out += '\n';
      text.remove_prefix(1);
    } else {
      move_printable(text, out);
    }
  }
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace tercel
