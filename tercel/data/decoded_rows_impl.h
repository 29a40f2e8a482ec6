// Rows as decoded columns, and batches made of them: what sources of columns (Parquet, tables in memory) share.
// Private.
//
// A column is decoded once, for all its rows, into one of three forms: f32 of a fixed width, keys as i64 with or
// without offsets, or a further column. Values that cannot be, such as missing ones, are listed beside the column: the
// error belongs to the row, not to whoever decodes it. The rules of a row are checked when it is copied into a batch.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tercel/data/arrow_owned_impl.h"
#include "tercel/data/batch_buffer_impl.h"
#include "tercel/data/record_source_impl.h"
#include "tercel/data/row_rules_impl.h"
#include "tercel/util/span.h"

namespace tercel::data {

/** A value that a row cannot have. */
struct BadCell {
  enum class Kind : uint8_t { Missing, Count, Weights, MissingWeight, Range };
  int64_t row = 0;
  Kind kind = Kind::Missing;
  int64_t found = 0;  // values where another number is expected; of Range the bits of an unsigned number above 2^63
};

/** Labels or dense values: `width` for each row. */
struct FloatColumn {
  int64_t width = 1;
  const float* values = nullptr;
  std::vector<float> own;    // that `values` may point to
  std::vector<BadCell> bad;  // in the order of the rows

  /** Of lists that were decoded with width 1: the length of the first one, at least 1. None if all `rows` are missing.
   */
  std::optional<int64_t> first_list_length(int64_t rows) const;
};

/** The keys of a slot: those of row r begin at keys[offsets[r]], or at keys[per_row * r] if there are no offsets. */
struct KeyColumn {
  int64_t per_row = 1;
  const int64_t* keys = nullptr;
  const int64_t* offsets = nullptr;
  const float* weights = nullptr;  // of each key; null: all are 1
  bool is_unsigned = false;        // keys are u64 in the files: for messages
  std::vector<int64_t> own, own_offsets;
  std::vector<float> own_weights;
  std::vector<BadCell> bad;

  int64_t begin(int64_t row) const { return offsets ? offsets[row] : per_row * row; }
  int64_t count(int64_t row) const { return offsets ? offsets[row + 1] - offsets[row] : per_row; }
};

/** A further column. */
struct FurtherColumn {
  const float* floats = nullptr;  // one of the two
  const int64_t* integers = nullptr;
  std::vector<float> own_floats;
  std::vector<int64_t> own_integers;
  std::vector<BadCell> bad;
};

/** Where rows come from, for messages. */
struct RowOrigin {
  int64_t first = 0;  // of the decoded rows
  size_t file = 0;
  int64_t group = -1;  // row group, or -1
  int64_t row = 0;     // in the file, of the first one
};

/** Consecutive rows. */
struct DecodedRows {
  int64_t rows = 0;
  std::vector<FloatColumn> floats;  // labels, then dense values
  std::vector<KeyColumn> keys;      // of each slot
  std::vector<FurtherColumn> columns;
  std::vector<RowOrigin> origins;
  std::vector<ArrowOwned<ArrowArray>> arrays;  // that columns may point into

  DecodedRows() = default;
  DecodedRows(DecodedRows&&) = default;
  DecodedRows& operator=(DecodedRows&&) = default;
  DecodedRows(const DecodedRows&) = delete;
  DecodedRows& operator=(const DecodedRows&) = delete;

  /** Appends copies of some rows of another; both have the same columns. */
  void append(const DecodedRows& from, int64_t begin, int64_t count);
  /** No rows, of the same columns. */
  void clear_like(const DecodedRows& other);
};

/** Names of the columns of decoded rows, for messages. */
struct ColumnNames {
  std::vector<std::string> floats, keys, columns;
  std::vector<std::string> weights;  // of each slot; empty where it has none
};

/** The sum and the difference modulo 2^64: keys may have any bits. */
constexpr int64_t add_wrapping(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
constexpr int64_t subtract_wrapping(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

/** Copies decoded rows into batches, and checks the rules of rows. */
class RowAssembler {
 public:
  /** `add` is added to the keys of each slot. `names` are of the columns, `files` of the origins. */
  RowAssembler(RowRules rules, BatchShape shape, ColumnNames names, std::vector<int64_t> add,
               std::vector<std::string> files);

  const BatchShape& shape() const { return shape_; }
  /**
   * Rows `first`, `first` + 1, ..., or those that `mix` lists, to the places of a window and the batch. BadRecord for
   * the first bad row; those before it are in the batch.
   */
  void decode(const DecodedRows& from, int64_t first, const uint32_t* mix, const Places& places,
              BatchBuffer& out) const;

 private:
  template <class RowAt>
  void decode_rows(const DecodedRows& from, RowAt row_at, const Places& places, BatchBuffer& out) const;
  /** False if a row breaks a rule. */
  template <class RowAt>
  bool copy_rows(const DecodedRows& from, RowAt row_at, int64_t count, int64_t batch_row, BatchBuffer& out) const;
  template <class RowAt>
  bool copy_floats(const DecodedRows& from, RowAt row_at, int64_t begin, int64_t end, int64_t batch_row,
                   BatchBuffer& out) const;
  template <class RowAt>
  bool copy_uniform(const DecodedRows& from, size_t input, RowAt row_at, int64_t begin, int64_t end, int64_t batch_row,
                    BatchBuffer& out) const;
  /** Whether the columns have a key in each row, and no weights. */
  bool is_one_hot(const DecodedRows& from, size_t input) const;
  // Of consecutive rows, by kernels. False if a row breaks a rule.
  bool interleave_one_hot(const DecodedRows& from, size_t input, int64_t first, int64_t count, int64_t batch_row,
                          BatchBuffer& out) const;
  bool interleave_dense(const DecodedRows& from, const FloatColumn* dense, int64_t first, int64_t count,
                        int64_t batch_row, BatchBuffer& out) const;
  template <class RowAt>
  bool copy_ragged(const DecodedRows& from, size_t input, RowAt row_at, int64_t count, int64_t batch_row,
                   BatchBuffer& out) const;
  template <class RowAt>
  bool copy_columns(const DecodedRows& from, RowAt row_at, int64_t count, int64_t batch_row, BatchBuffer& out) const;
  /** Throws the error of a row, if it breaks a rule. */
  void check_row(const DecodedRows& from, int64_t row) const;
  [[noreturn]] void fail(const DecodedRows& from, int64_t row, std::string_view column, std::string_view expected,
                         std::string_view found) const;

  RowRules rules_;
  BatchShape shape_;
  ColumnNames names_;
  std::vector<int64_t> add_;
  std::vector<std::string> files_;
  std::vector<size_t> first_slot_;               // of each input
  std::vector<int64_t> row_nnz_;                 // of each input, in a uniform row
  std::vector<uint64_t> first_key_, key_range_;  // of each slot
};

/** Consecutive rows of a window, or why they are not there. */
struct DecodedPart {
  std::shared_ptr<const DecodedRows> rows;
  int64_t skip = 0;   // rows of them before the part's first
  int64_t first = 0;  // row of the window
  int64_t count = 0;
  std::exception_ptr error;
};

/**
 * Decodes places of a window whose rows are the parts, in the order in which they were read; with `mix`, which is
 * ascending if it is not empty, place i is row mix[i].
 */
void decode_parts(const RowAssembler& assembler, Span<DecodedPart> parts, Span<uint32_t> mix, const Places& places,
                  BatchBuffer& out);

}  // namespace tercel::data
