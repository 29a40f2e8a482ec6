// Tables in memory: their rows, format and source. Private.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tercel/data/dataset_format.h"
#include "tercel/data/decoded_rows_impl.h"
#include "tercel/data/formats/parquet_layout_impl.h"
#include "tercel/data/record_source_impl.h"
#include "tercel/data/spool_impl.h"

namespace tercel::data {

constexpr std::string_view kArrowFormat = "arrow";

/** The rows of a part: all columns of the schema. */
struct TablePart {
  std::vector<DecodedRows> chunks;  // none is empty
  std::vector<int64_t> starts;      // the first row of each
  int64_t rows = 0;
  int64_t bytes = 0;     // decoded
  bool uniform = false;  // all slots of all rows are full
};

/** The rows of all parts. Copies of a dataset, and its readers, share them. */
struct TableRows {
  static constexpr int64_t kHeapBytes = int64_t{512} << 20;

  Spool spool{kHeapBytes};  // that the parts may point into
  std::array<TablePart, 3> parts;
};

/** The format of a dataset of tables; null for one that is only described, whose rows are gone. */
std::unique_ptr<DatasetFormat> arrow_table_format(const TableColumns& columns, std::shared_ptr<const TableRows> rows);

}  // namespace tercel::data
