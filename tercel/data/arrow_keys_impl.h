// Keys of Arrow arrays, and their weights. Private.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/data/arrow_columns_impl.h"
#include "tercel/data/arrow_elements_impl.h"
#include "tercel/data/decoded_rows_impl.h"

namespace tercel::data {

/** What the keys of a column have otherwise than the file, for the weights beside them. */
struct KeyChanges {
  std::vector<int64_t> dropped;   // rows without keys, whatever the file has
  std::vector<int64_t> replaced;  // rows of one key that stands in place of what is missing
  /** A key that stands in place of a missing one in a list. */
  struct Filled {
    int64_t row;
    int64_t key;  // of the row
  };
  std::vector<Filled> filled;
};

// The arrays must outlive what is decoded from them. DataError for those that contradict the C data interface.

KeyChanges decode_keys(const ArrowArray& array, const ArrowNumbers& numbers, const ColumnPlan& plan, KeyColumn& out,
                       const ArrowPlace& place);
/** Weights beside the keys: a number each; 1 for keys that stand in place of missing ones. */
void decode_weights(const ArrowArray& array, const ArrowNumbers& numbers, const KeyChanges& changes, KeyColumn& out,
                    const ArrowPlace& place);

}  // namespace tercel::data
