// Writes the rows of a dataset in another format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tercel/data/batch_reader.h"
#include "tercel/data/dataset.h"
#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/options.h"

namespace tercel::data {

struct ConvertDatasetOptions {
  int64_t rows_per_file = 0;
  OnBadRecord on_bad_record = OnBadRecord::Fail;
  int64_t max_bad_records = 1000;
  std::shared_ptr<const DatasetFormat> format;  // of the new files: see make_format_like()

  static constexpr auto fields() {
    return option_list(
        option_field<&ConvertDatasetOptions::rows_per_file>(
            "rows_per_file", "rows of each file; 0: as many as the file of the same number has in the source",
            at_least(0)),
        option_field<&ConvertDatasetOptions::on_bad_record>(
            "on_bad_record", "fail, or leave out the row; one that the new format cannot hold always fails"),
        option_field<&ConvertDatasetOptions::max_bad_records>("max_bad_records",
                                                              "rows of each part that may be left out", at_least(0)));
  }
};

struct ConvertDatasetResult {
  Dataset dataset;
  int64_t bad_records = 0;       // rows that were left out
  std::string first_bad_record;  // the message about the first of them
};

/**
 * Writes every row of a dataset into a new folder, which appears when it is complete. Rows
 * keep their order, and by default their files; vocabulary, conversion record and planted truth are kept, the format of
 * the source becomes one of the `origins`. Memory does not depend on the number of rows. ConfigError for a schema that
 * the format cannot hold, before anything is written; DataError that names file and row for the first row that it
 * cannot hold, or that is invalid in the source. With `replace`, the folder may hold a dataset already. `progress` is
 * called with the rows written; exceptions from it end the conversion.
 */
TERCEL_API ConvertDatasetResult convert_dataset(const Dataset& source, const std::string& folder,
                                                const ConvertDatasetOptions& options, bool replace,
                                                FunctionRef<void(int64_t rows)> progress);

}  // namespace tercel::data
