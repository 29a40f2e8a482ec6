#include <charconv>
#include <cmath>

#include "tercel/recsys/report/html_impl.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : printable_lines(text)) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

std::string number_text(double value, int digits) {
  if (std::isnan(value)) return "\xe2\x80\x94";
  char text[64];
  // Not printf, which follows the locale of the process.
  const auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::general, digits);
  return {text, end.ptr};
}

}  // namespace tercel::recsys
