// Conversion of small tables, for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tercel/data/convert.h"
#include "tests/data/norm_data.h"

namespace tercel::data::test {

inline void ignore_progress(const ConvertProgress&) {}

/** A table with the columns y, a number n and categories c and d; every category counts. */
inline CsvOptions table_options() {
  CsvOptions options;
  options.label = "y";
  options.categorical = {"c"};
  options.min_count = {"1"};
  options.test_every = 0;
  return options;
}

/** Converts a text in a folder of its own. */
class TableConversion {
 public:
  ConvertResult run(const std::string& text, const CsvOptions& options) {
    return convert_csv({folder_.put("t.csv", text)}, folder_ / "data", options, /*replace=*/true, ignore_progress);
  }
  const TemporaryFolder& folder() const { return folder_; }
  Rows rows(const Dataset& dataset, PartName part) const {
    if (dataset.part(part).files.empty()) return {};
    BatchReader reader(dataset, part, {});
    return read_rest(reader);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace tercel::data::test
