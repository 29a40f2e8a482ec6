#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

/** Columns of one value in each row, which become the columns of rows that are `stride` values apart. */
template <class T>
struct ColumnsLoop {
  const T* const* columns;  ///< the first row of each
  int64_t count;
  T* out;  ///< the first value of the first row
  int64_t stride;
};

/** Keys as they are in files: `add` is added, with wrapping, and the sum - first_key, unsigned, is at most key_range.
 */
struct KeyColumnsLoop : ColumnsLoop<int64_t> {
  const int64_t* add;  ///< of each column
  const uint64_t* first_key;
  const uint64_t* key_range;
};

/** Copies rows [begin, end) to the rows begin, ... of `out`; false if one has a key out of its range. */
using KeyColumnsFn = bool(const KeyColumnsLoop& loop, int64_t begin, int64_t end);
/** The same of floats; false if one is not finite. */
using FloatColumnsFn = bool(const ColumnsLoop<float>& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(KeyColumnsFn, interleave_keys)
TERCEL_DECLARE_KERNELS(FloatColumnsFn, interleave_floats)

}  // namespace tercel
