// Batches of consecutive rows, as dense tensors on the CPU. The same for every format.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"

namespace tercel::data {

/** The order of bags in a batch: all slots of a row together, or all rows of a slot. */
enum class BagOrder : uint8_t { SampleMajor, SlotMajor };

constexpr auto enum_names(BagOrder) {
  return std::to_array<EnumName<BagOrder>>(
      {{BagOrder::SampleMajor, "sample_major"}, {BagOrder::SlotMajor, "slot_major"}});
}

/**
 * The keys of consecutive slots. Bag i has keys[row_offsets[i]] to keys[row_offsets[i + 1] - 1]; it belongs to row
 * i / slot_num and slot i % slot_num (SampleMajor, as in the files), or to slot i / rows and row i % rows (SlotMajor).
 */
struct SparseBatch {
  std::string name = {};  // of the input
  int64_t slot_num = 0;
  int64_t hotness = 0;  // every bag is known to have this many keys; 0: bags may differ
  BagOrder order = BagOrder::SampleMajor;
  Tensor row_offsets = {};  // [rows * slot_num + 1], of the keys' dtype; batches may share it: not to be written to
  Tensor keys = {};         // [nnz] i64 or i32
  Tensor key_weights = {};  // [nnz] f32, or undefined
};

/** A further value of each row, such as a weight, a time, a group or an id. */
struct RowColumn {
  std::string name;
  Tensor values;  // [rows] f32 or i64
};

/**
 * Rows [row, row + rows + bad_rows.size()) of an epoch, in the epoch's order. They are all rows of the batch, or one
 * rank's part of the rows [global_row, global_row + global_rows).
 */
struct TERCEL_API Batch {
  int64_t epoch = 0;
  int64_t row = 0;
  int64_t rows = 0;
  int64_t global_row = 0;
  int64_t global_rows = 0;
  Tensor labels;                    // [rows, label_dim] f32
  Tensor dense;                     // [rows, dense_dim] f32
  std::vector<SparseBatch> sparse;  // one for each sparse input of the reader
  std::vector<RowColumn> columns;   // one for each column that the reader was asked for
  Tensor weights;                   // [rows] f32, of each row in losses and metrics; undefined: 1 each
  /** Rows of the epoch's order that were left out because their records are bad: the batch lacks them. */
  std::vector<int64_t> bad_rows;
  std::string bad_record;  // the message about the first of them

  /** The input of this name; ConfigError that names those there are if there is none. */
  const SparseBatch& input(std::string_view name) const;
};

}  // namespace tercel::data
