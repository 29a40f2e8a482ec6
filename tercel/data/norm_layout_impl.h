// A schema's rules applied to the bytes of Norm files: sizes, limits, and the checks of header and record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/dataset.h"
#include "tercel/data/norm_format.h"
#include "tercel/util/cursor.h"
#include "tercel/util/file.h"
#include "tercel/util/span.h"

namespace tercel::data {

/** Reads a value; the caller has checked the bounds. */
template <class T>
T load_unaligned(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

struct NormLayout {
  struct SlotRule {
    uint64_t first_key;  // keys with key - first_key <= key_range, unsigned, are in the slot
    uint64_t key_range;
    int64_t hotness;
  };

  /** Without inputs, keys are checked against the schema only. */
  NormLayout(const Schema& schema_of_rows, KeyType width, CheckMode mode, bool labels_are_binary,
             Span<SparseInput> inputs = {});

  bool framed() const { return check_mode == CheckMode::Sum; }
  int64_t header_bytes() const { return norm_header_bytes(check_mode); }

  Schema schema;
  KeyType key_type;
  CheckMode check_mode;
  bool binary_labels;
  std::vector<SlotRule> slots;
  std::vector<std::string> tables;  // of each slot: the table that its keys are for, if any
  int64_t min_record_bytes;         // no keys
  int64_t max_record_bytes;         // `hotness` keys in every slot
};

/** Number of records; DataError unless the file begins with a header that fits the layout. */
int64_t read_norm_header(const File& file, const NormLayout& layout);

/**
 * A hint for errors if the file's size shows that its keys have the other width, which files do not record:
 * " (the size of the file is right for u32 keys)"; else "".
 */
std::string key_type_hint(int64_t bytes, int64_t records, const NormLayout& layout);

/** Whether all records have max_record_bytes; DataError if no file of this size can hold so many records. */
bool check_norm_size(const std::string& path, int64_t bytes, int64_t records, const NormLayout& layout);

/**
 * Throws DataError for the first rule that a record breaks. The bytes start with it and go on to the end of the file,
 * or far enough to hold it; `exact` demands `hotness` keys in every slot.
 */
void check_norm_record(const NormLayout& layout, Span<std::byte> bytes, const CursorContext& context, bool exact);

}  // namespace tercel::data
