#pragma once

#include <cstddef>
#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

/** Rows of equal size in a window, the rules of their values, and where they go. */
struct RawRowsLoop {
  const std::byte* rows;
  int64_t row_bytes;
  const uint32_t* mix;  ///< place i is row mix[i]; null: i
  int64_t label_dim, dense_dim;
  bool float_labels, float_dense;  ///< in the rows; else i32
  bool binary_labels;              ///< labels are 0 or 1; else finite
  bool wide_keys;                  ///< i64; else u32
  const float* logs;               ///< of the integer dense values below num_logs
  int32_t num_logs;
  float (*log)(int32_t);  ///< of the others
  /** Of each key of a row, as wide as the keys: key - first_key, unsigned, is at most key_range. */
  const void* first_key;
  const void* key_range;
  const int64_t* key_offset;  ///< added to each key of a row; null: nothing

  struct Input {
    int64_t* keys;  ///< of the first place
    int64_t nnz;    ///< of a row
  };
  const Input* inputs;
  int64_t num_inputs;
  float* labels;  ///< of the first place
  float* dense;
};

/** Decodes places [begin, end); returns the first one that breaks a rule, or -1. */
using RawRowsFn = int64_t(const RawRowsLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(RawRowsFn, decode_raw_rows)

}  // namespace tercel
