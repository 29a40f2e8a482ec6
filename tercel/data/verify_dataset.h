// Checks all of a dataset: checksums, every rule of every row, the vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/options.h"

namespace tercel::data {

struct VerifyOptions {
  int64_t max_faults = 1;
  bool binary_labels = true;

  static constexpr auto fields() {
    return option_list(
        option_field<&VerifyOptions::max_faults>("max_faults", "faults after which to stop", at_least(1),
                                                 at_most(1 << 20)),
        option_field<&VerifyOptions::binary_labels>("binary_labels", "refuse labels other than 0 and 1"));
  }
};

struct VerifyResult {
  int64_t files = 0;     // that were read, the vocabulary included
  int64_t rows = 0;      // that follow all rules
  int64_t bytes = 0;     // of the files
  int64_t unsummed = 0;  // files without a recorded checksum
  std::vector<std::string> faults;
};

/** Progress of verify_dataset(): files are read twice, for their checksums and for their rows. */
struct VerifyProgress {
  int64_t rows = 0;
  int64_t bytes_done = 0;
  int64_t bytes_total = 0;
};

/**
 * Reads every file: its rows, then its size and checksum, if one is recorded. Where a bad row hides the beginning of
 * the next, as in ragged files, the rows behind it are not checked. The vocabulary must be the one of the schema, a
 * file list must name the part's files. IoError for files that cannot be read. Exceptions from `progress` end it.
 */
TERCEL_API VerifyResult verify_dataset(const Dataset& dataset, const VerifyOptions& options,
                                       FunctionRef<void(const VerifyProgress&)> progress);

}  // namespace tercel::data
