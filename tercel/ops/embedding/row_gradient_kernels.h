#pragma once

#include "tercel/ops/sort/key_sort_kernels.h"

namespace tercel {

/** Sums values over equal keys: of position i, values[sources[i], :] or values[i, :]; see Note [Sorted elements]. */
struct SegmentSum {
  SortedKeys sorted;
  const int64_t* sources;  ///< [n], or null
  const void* values;
  int64_t value_stride;  ///< from one row to the next, in elements
  int64_t dim;
  ScalarType dtype;  ///< floating
  int64_t* rows;     ///< [m] out
  void* sums;        ///< [m, dim] out
};

/** Counts the segments (runs of equal keys) that begin in [begin, end). */
using CountSegmentsFn = int64_t(const SortedKeys& sorted, int64_t begin, int64_t end);
/** Sums the segments that begin in [begin, end), the first of which has index `first`. */
using SumSegmentsFn = void(const SegmentSum& sum, int64_t begin, int64_t end, int64_t first);

TERCEL_DECLARE_KERNELS(CountSegmentsFn, count_segments)
TERCEL_DECLARE_KERNELS(SumSegmentsFn, sum_segments)

}  // namespace tercel
