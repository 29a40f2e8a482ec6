// Numbers in the state of a metric, and its rows. Private.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "tercel/recsys/metrics/metric.h"
#include "tercel/util/cursor.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

/** Appends the bytes of a number, for ByteCursor::read(). */
template <class T>
void put(std::string& bytes, T value) {
  static_assert(std::is_arithmetic_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/** The next number, a sum of weights; DataError if it is negative or not finite. */
inline double read_weight(ByteCursor& bytes, std::string_view what) {
  const auto sum = bytes.read<double>(what);
  if (!std::isfinite(sum) || sum < 0) bytes.fail("a finite sum of weights that is not negative", format_double(sum));
  return sum;
}

/** The next byte, 0 or 1; DataError for others. */
inline bool read_flag(ByteCursor& bytes, std::string_view what) {
  const auto flag = bytes.read<uint8_t>(what);
  if (flag > 1) bytes.fail("0 or 1", std::to_string(flag));
  return flag == 1;
}

/** The weight of a row. */
inline double weight_of(const MetricRows& rows, size_t i) {
  return rows.weights.empty() ? 1.0 : static_cast<double>(rows.weights[i]);
}

}  // namespace tercel::recsys
