#include "tercel/util/error.h"

#include <charconv>

namespace tercel {

// Out of line, so that vtable and type info of each type are emitted once.
Error::~Error() = default;
InternalError::~InternalError() = default;
RuntimeError::~RuntimeError() = default;
ValueError::~ValueError() = default;
IndexError::~IndexError() = default;
TypeError::~TypeError() = default;
NotImplementedError::~NotImplementedError() = default;
ConfigError::~ConfigError() = default;
DataError::~DataError() = default;
IoError::~IoError() = default;
OutOfMemoryError::~OutOfMemoryError() = default;
NumericError::~NumericError() = default;

namespace detail {

void MessagePart::append_to(std::string& out) const {
  // to_chars, because printf writes a decimal comma where the program has set such a locale.
  char buffer[40];
  char* const last = buffer + sizeof buffer;
  switch (kind_) {
    case Kind::Text: out.append(text_); return;
    case Kind::Char: out.push_back(char_); return;
    case Kind::Signed: out.append(buffer, std::to_chars(buffer, last, signed_).ptr); return;
    case Kind::Unsigned: out.append(buffer, std::to_chars(buffer, last, static_cast<uint64_t>(signed_)).ptr); return;
    case Kind::Double:
      out.append(buffer, std::to_chars(buffer, last, double_, std::chars_format::general, 9).ptr);
      return;
    case Kind::List:
      out.push_back('[');
      for (size_t i = 0; i < list_.size(); ++i) {
        if (i) out.append(", ");
        MessagePart(list_[i]).append_to(out);
      }
      out.push_back(']');
      return;
  }
}

void assertion_failed(const char* expression, const char* file, int line) {
  throw InternalError(str_cat({"internal error, please report: ", expression, " does not hold at ", file, ":", line}));
}

}  // namespace detail

std::string str_cat(std::initializer_list<detail::MessagePart> parts) {
  std::string out;
  for (const auto& part : parts) part.append_to(out);
  return out;
}

}  // namespace tercel
