#include "tercel/util/cursor.h"

#include "tercel/util/format.h"

namespace tercel {

void ByteCursor::fail_at(int64_t offset, std::string_view expected, std::string_view found) const {
  std::string message = printable(context_.file);
  if (context_.record >= 0) message += str_cat({": record ", context_.record});
  throw_error<DataError>(
      {message, ": byte ", offset, ": expected ", printable(expected), ", found ", printable(found)});
}

void ByteCursor::fail_short(size_t count, size_t element_bytes, std::string_view what) const {
  const std::string wanted = element_bytes == 1 || count == 1
                                 ? str_cat({count * element_bytes, " bytes"})
                                 : str_cat({count, " values of ", element_bytes, " bytes"});
  fail(str_cat({wanted, " of ", what}), str_cat({remaining(), " bytes before the end"}));
}

void ByteCursor::fail_count(uint64_t count, bool negative, size_t element_bytes, std::string_view what) const {
  const std::string found = negative ? str_cat({static_cast<int64_t>(count)}) : str_cat({count});
  fail(str_cat({what, " of 0 to ", remaining() / element_bytes, " (", remaining(), " bytes are left)"}), found);
}

void ByteCursor::expect_end(std::string_view after) const {
  if (!at_end()) fail(str_cat({"the end after ", after}), str_cat({remaining(), " more bytes"}));
}

}  // namespace tercel
