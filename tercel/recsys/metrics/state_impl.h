// Numbers in the state of a metric. Private.
#pragma once

#include <string>
#include <type_traits>

namespace tercel::recsys {

/** Appends the bytes of a number, for ByteCursor::read(). */
template <class T>
void put(std::string& bytes, T value) {
  static_assert(std::is_arithmetic_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace tercel::recsys
