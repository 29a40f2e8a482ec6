// The bytes of files of rows of equal size, which Raw and RawAsync are: labels, dense values and keys one after the
// other, without header, counts or checksums. Private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/formats/key_type.h"
#include "tercel/data/formats/raw_format.h"
#include "tercel/data/random_access_file.h"
#include "tercel/data/row_rules_impl.h"
#include "tercel/util/cursor.h"
#include "tercel/util/span.h"

namespace tercel::data {

/** Type of labels or dense values in a file. */
enum class NumberType : uint8_t { F32, I32 };

/** What distinguishes the formats of such files. */
struct RawTypes {
  std::string_view format;        // "raw", for messages
  std::string_view float_option;  // the option that says whether dense values are f32
  NumberType labels = NumberType::F32;
  NumberType dense = NumberType::F32;
  KeyType keys = KeyType::U32;
  uint64_t max_key = data::max_key(KeyType::U32);
  SlotOffsets slot_offsets = SlotOffsets::None;
};

struct RawLayout {
  /** ConfigError for a schema whose rows no file can hold. Without inputs, keys are checked against it only. */
  RawLayout(const Schema& schema, const RawTypes& raw_types, bool binary_labels, Span<SparseInput> inputs = {});

  const Schema& schema() const { return rules.schema(); }

  RawTypes types;
  /** Of the values in the files: there, keys of slots with an offset begin at 0. */
  RowRules rules;
  std::vector<int64_t> key_offsets;  // of each slot: what is added to its keys
  int64_t row_bytes;
};

/** An integer dense value as readers deliver it: ln(x + 1), computed in f32 as HugeCTR does; NaN below -1. */
float log_of_dense(int32_t value);
/** The integer of which log_of_dense() is exactly this value; false if there is none. */
bool inverse_log_of_dense(float value, int32_t& out);

/** Rows in a file of this size; DataError unless it is a multiple of the size of a row. */
int64_t raw_rows(const std::string& path, int64_t bytes, const RawLayout& layout);

/** DataError unless a file of this size has the rows, and a whole number of rows in all. */
void check_raw_size(const std::string& path, int64_t bytes, int64_t rows, const RawLayout& layout);

/** Throws DataError for the first rule that a row breaks. */
void check_raw_row(const RawLayout& layout, Span<std::byte> row, const CursorContext& context);

/**
 * DataError if the first rows show that labels or dense values have the other type: the only trace that a wrong
 * float_label_dense or is_dense_float, or a file of another generator, may leave.
 */
void check_raw_types(const RandomAccessFile& file, const RawLayout& layout);

}  // namespace tercel::data
