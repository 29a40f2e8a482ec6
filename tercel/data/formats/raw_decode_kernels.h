#pragma once

#include "tercel/core/dispatch.h"
#include "tercel/data/formats/row_decode_kernels.h"

namespace tercel {

/** Rows of Raw and RawAsync. */
struct RawRowsLoop : RowsLoop {
  bool float_labels, float_dense;  ///< in the rows; else i32
  const float* logs;               ///< of the integer dense values below num_logs
  int32_t num_logs;
  float (*log)(int32_t);      ///< of the others
  const int64_t* key_offset;  ///< added to each key of a row; null: nothing
};

/** Decodes places [begin, end); returns the first one that breaks a rule, or -1. */
using RawRowsFn = int64_t(const RawRowsLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(RawRowsFn, decode_raw_rows)

}  // namespace tercel
