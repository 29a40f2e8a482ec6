#pragma once

#include <cstddef>
#include <cstdint>

namespace tercel {

/** Rows of equal size in a window, the rules of their values, and where they go: for kernels of Norm and of Raw. */
struct RowsLoop {
  const std::byte* rows;
  int64_t row_bytes;
  const uint32_t* mix;  ///< place i is row mix[i]; null: i
  int64_t label_dim, dense_dim;
  bool binary_labels;  ///< labels are 0 or 1; else finite
  bool wide_keys;      ///< i64; else u32
  /** Of each key of a row: key - first_key, unsigned, is at most key_range. */
  const uint64_t* first_key;
  const uint64_t* key_range;

  struct Input {
    int64_t* keys;  ///< of the first place
    int64_t nnz;    ///< of a row
    int64_t slot_num;
    bool one_hot;  ///< a key in each slot
  };
  const Input* inputs;
  int64_t num_inputs;
  float* labels;  ///< of the first place
  float* dense;
};

}  // namespace tercel
