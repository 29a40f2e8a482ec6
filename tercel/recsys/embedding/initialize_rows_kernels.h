#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"

namespace tercel {

/** Rows to be filled by Note [Initial rows]. */
struct InitialRowsLoop {
  ScalarType dtype;  ///< float32 or float64
  bool normal;       ///< with mean a and standard deviation b; else uniform in [a, b)
  float a, b;
  uint64_t seed;               ///< of the table
  uint64_t first_key;          ///< of row 0, the others follow; unless there are
  const int64_t* keys;         ///< one of each, or null
  const int64_t* row_numbers;  ///< with keys: where the rows are
  int64_t dim;
  int64_t stride;  ///< from row to row, in elements
  void* rows;
};
/** Rows [begin, end). */
using InitialRowsFn = void(const InitialRowsLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(InitialRowsFn, initialize_rows)

}  // namespace tercel
