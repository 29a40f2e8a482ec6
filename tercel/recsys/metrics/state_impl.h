// Numbers in the state of a metric. Private.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "tercel/util/cursor.h"

namespace tercel::recsys {

/** Appends the bytes of a number, for ByteCursor::read(). */
template <class T>
void put(std::string& bytes, T value) {
  static_assert(std::is_arithmetic_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/** The next number, of rows, added to `have`; DataError if it is negative or the sum overflows. */
inline int64_t read_count(ByteCursor& bytes, int64_t have, std::string_view what) {
  const auto count = bytes.read<int64_t>(what);
  int64_t sum = 0;
  if (count < 0 || __builtin_add_overflow(have, count, &sum)) bytes.fail("a number of rows", std::to_string(count));
  return sum;
}

/** The next byte, 0 or 1; DataError for others. */
inline bool read_flag(ByteCursor& bytes, std::string_view what) {
  const auto flag = bytes.read<uint8_t>(what);
  if (flag > 1) bytes.fail("0 or 1", std::to_string(flag));
  return flag == 1;
}

}  // namespace tercel::recsys
