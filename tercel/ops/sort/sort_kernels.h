#pragma once

#include "tercel/ops/sort/key_sort_kernels.h"

namespace tercel {

/** Maps elements of any dtype to integers with the same order; NaN last, both zeros equal. */
using SortKeysFn = void(ScalarType dtype, const void* in, int64_t n, int64_t* keys);

/** Outputs for sorted elements; null if not needed. */
struct SortResult {
  SortedKeys sorted;
  ScalarType dtype;
  const void* in;  ///< the unsorted elements
  void* values;
  int64_t* indices;
};
/** Elements [begin, end) of the result. */
using SortResultFn = void(const SortResult& result, int64_t begin, int64_t end);

struct UniqueResult {
  SortedKeys sorted;
  ScalarType dtype;
  const void* in;    ///< the unsorted elements
  void* values;      ///< [m]
  int64_t* inverse;  ///< [n], or null
  int64_t* starts;   ///< [m]: position of the first element of each segment, or null
};
/** Counts the segments (runs of equal elements; NaN equals nothing) that begin in [begin, end). */
using CountUniqueFn = int64_t(const UniqueResult& result, int64_t begin, int64_t end);
/** Segments that begin in [begin, end); `first` is the index of the first of them. */
using UniqueResultFn = void(const UniqueResult& result, int64_t begin, int64_t end, int64_t first);

TERCEL_DECLARE_KERNELS(SortKeysFn, sort_keys)
TERCEL_DECLARE_KERNELS(SortResultFn, sort_result)
TERCEL_DECLARE_KERNELS(CountUniqueFn, count_unique)
TERCEL_DECLARE_KERNELS(UniqueResultFn, unique_result)

/** The key of NaN in a floating dtype. */
constexpr int64_t nan_key(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Float64: return INT64_MAX;
    case ScalarType::Float32: return INT32_MAX;
    default: return INT16_MAX;
  }
}

}  // namespace tercel
