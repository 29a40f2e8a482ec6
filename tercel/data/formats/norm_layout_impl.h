// The bytes of Norm files that hold rows of a schema: their sizes, and the checks of header and record. Private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tercel/data/formats/norm_format.h"
#include "tercel/data/random_access_file.h"
#include "tercel/data/row_rules_impl.h"
#include "tercel/util/cursor.h"
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
  /** Without inputs, keys are checked against the schema only. */
  NormLayout(const Schema& schema, const NormOptions& norm_options, bool binary_labels, Span<SparseInput> inputs = {});

  const Schema& schema() const { return rules.schema(); }
  bool framed() const { return options.check_mode == CheckMode::Sum; }
  int64_t header_bytes() const { return norm_header_bytes(options.check_mode); }
  /** Bytes of the framed record of a row with `nnz` keys. */
  int64_t record_bytes(int64_t nnz) const {
    return norm_record_bytes(schema().label_dim, schema().dense_dim, schema().slot_num(), nnz, options.key_type,
                             options.check_mode);
  }

  NormOptions options;
  RowRules rules;
  int64_t min_record_bytes;  // no keys
  int64_t max_record_bytes;  // `hotness` keys in every slot
};

/** Number of records; DataError unless the file begins with a header that fits the layout. */
int64_t read_norm_header(const RandomAccessFile& file, const NormLayout& layout);

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
