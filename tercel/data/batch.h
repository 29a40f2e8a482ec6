// Batches of consecutive rows, as dense tensors on the CPU. The same for every format.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/core/tensor.h"

namespace tercel::data {

/**
 * The keys of consecutive slots. Bag i = row * slot_num + slot has keys[row_offsets[i]] to keys[row_offsets[i + 1] -
 * 1], so keys lie row by row, and in a row slot by slot, as in the files.
 */
struct SparseBatch {
  int64_t slot_num = 0;
  int64_t hotness = 0;  // every bag is known to have this many keys; 0: bags may differ
  Tensor row_offsets;   // [rows * slot_num + 1] i64; batches may share it: not to be written to
  Tensor keys;          // [nnz] i64
};

/** Rows [row, row + rows) of an epoch, in the epoch's order. */
struct Batch {
  int64_t epoch = 0;
  int64_t row = 0;
  int64_t rows = 0;
  Tensor labels;                    // [rows, label_dim] f32
  Tensor dense;                     // [rows, dense_dim] f32
  std::vector<SparseBatch> sparse;  // one for each sparse input of the reader
};

}  // namespace tercel::data
