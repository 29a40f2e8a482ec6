#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"

namespace tercel {

/** The k best elements of contiguous lines of n: smallest, or largest, first; equal ones in original order. */
struct TopkLoop {
  ScalarType dtype;
  const void* lines;
  int64_t n, k;
  bool largest;
  void* values;      ///< [lines, k]
  int64_t* indices;  ///< [lines, k]
  void* scratch;     ///< topk_scratch_bytes(n, k), for this call only
};
/** Results are not sorted for larger k. */
constexpr int64_t kMaxOrdered = 128;
/** Lines are read in pieces of this many elements. */
constexpr int64_t kOrderStatisticPiece = 4096;

/** Memory for keys and positions of candidates, and for a copy of keys to select from. */
constexpr int64_t topk_scratch_bytes(int64_t n, int64_t k) {
  const int64_t candidates = (n < 2 * k + kOrderStatisticPiece ? n : 2 * k + kOrderStatisticPiece) + 16;
  return 3 * candidates * int64_t{sizeof(int64_t)};
}

enum class RankOf : uint8_t { All, MedianOrNan, MedianOfNumbers };
/** The element of a given rank in each of several contiguous lines of n. */
struct OrderStatisticLoop {
  ScalarType dtype;
  const void* lines;
  int64_t n;
  RankOf of;
  int64_t rank;      ///< from 0, for RankOf::All
  void* values;      ///< [lines]
  int64_t* indices;  ///< [lines]
  void* scratch;     ///< order_statistic_scratch_bytes(n), for this call only
};
constexpr int64_t order_statistic_scratch_bytes(int64_t n) { return 2 * (n + 16) * int64_t{sizeof(int64_t)}; }

/** Lines [begin, end). */
using TopkFn = void(const TopkLoop& loop, int64_t begin, int64_t end);
using OrderStatisticFn = void(const OrderStatisticLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(TopkFn, topk)
TERCEL_DECLARE_KERNELS(OrderStatisticFn, order_statistic)

}  // namespace tercel
