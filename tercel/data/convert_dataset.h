// Writes the rows of a dataset in another format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

#include "tercel/data/dataset.h"
#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/options.h"

namespace tercel::data {

struct ConvertDatasetOptions {
  int64_t rows_per_file = 0;
  std::shared_ptr<const DatasetFormat> format;  // of the new files: see make_format_like()

  static constexpr auto fields() {
    return std::tuple(Field{"rows_per_file", &ConvertDatasetOptions::rows_per_file,
                            "rows of each file; 0: as many as the file of the same number has in the source",
                            at_least(0)});
  }
};

/**
 * Writes every row of a dataset into a new folder, which appears when it is complete, and returns its description. Rows
 * keep their order, and by default their files; vocabulary, conversion record and planted truth are kept, the format of
 * the source becomes one of the `origins`. Memory does not depend on the number of rows. ConfigError for a schema that
 * the format cannot hold, before anything is written; DataError that names file and row for the first row that it
 * cannot hold, or that is invalid in the source. With `replace`, the folder may hold a dataset already. `progress` is
 * called with the rows written; exceptions from it end the conversion.
 */
TERCEL_API Dataset convert_dataset(const Dataset& source, const std::string& folder,
                                   const ConvertDatasetOptions& options, bool replace,
                                   FunctionRef<void(int64_t rows)> progress);

}  // namespace tercel::data
