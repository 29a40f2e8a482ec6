// What libsvm's and libffm's files hold, before they can be converted. Private.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/data/text_table.h"
#include "tercel/util/function_ref.h"

namespace tercel::data {

struct FeatureScan {
  std::vector<int64_t> fields;  // the numbers of libffm's fields, ascending
  bool all_ones = true;         // every value is 1 or 0
};

/** Reads all files. `progress` gets rows and bytes so far. DataError for invalid text and more fields than slots. */
FeatureScan scan_features(const TextFormat& format, const std::vector<TextSource>& sources,
                          FunctionRef<void(int64_t, int64_t, int64_t)> progress);

}  // namespace tercel::data
