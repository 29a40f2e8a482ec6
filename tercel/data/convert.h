// Converts raw click logs to datasets in two passes over the text, with memory for the vocabulary only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/text_format.h"
#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"

namespace tercel::data {

/** Progress of a conversion. */
struct ConvertProgress {
  int pass = 1;            // of 2
  int64_t rows = 0;        // of this pass
  int64_t bytes_done = 0;  // of both passes, as bytes_total; compressed where files are
  int64_t bytes_total = 0;
};

struct ConvertResult {
  Dataset dataset;
  int64_t train_clicks = 0;
  int64_t test_clicks = 0;
  /** Per field, the different categories of the train rows; those with enough rows are slots[i].size - 1. */
  std::vector<int64_t> categories_seen;
};

/**
 * Converts Criteo's text to a dataset in a folder, which appears when it is complete. Sources are files,
 * gzip or plain, or "-" for the standard input, which is saved beside the folder meanwhile. The first pass counts
 * categories and computes moments, of train rows only; the second one writes. Categories get ids from 1 on by
 * descending count, then by their bytes. With `replace`, the folder may hold a dataset already. Exceptions from
 * `progress` end the conversion. DataError that names file, line and column for invalid text, and if files change
 * meanwhile or there are no train rows.
 */
TERCEL_API ConvertResult convert_criteo(const std::vector<std::string>& sources, const std::string& folder,
                                        const CriteoOptions& options, bool replace,
                                        FunctionRef<void(const ConvertProgress&)> progress);

/** The same for any table of text. */
TERCEL_API ConvertResult convert_csv(const std::vector<std::string>& sources, const std::string& folder,
                                     const CsvOptions& options, bool replace,
                                     FunctionRef<void(const ConvertProgress&)> progress);

}  // namespace tercel::data
