// _metadata.json beside Parquet files: which columns are labels, dense values and keys, and the rows of each file.
// NVTabular writes it, HugeCTR needs it. Private.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/formats/column_describer_impl.h"
#include "tercel/data/formats/parquet_footer.h"
#include "tercel/data/formats/parquet_layout_impl.h"
#include "tercel/util/json_impl.h"

namespace tercel::data {

constexpr std::string_view kParquetMetadataFile = "_metadata.json";

/** Read as HugeCTR does: by index, sorted and without duplicates; or by name. */
class ParquetMetadata {
 public:
  /** DataError for a file that is not such JSON. */
  ParquetMetadata(const std::string& path, bool by_name);

  /** The columns; DataError for indices that the file does not have. */
  ColumnChoice choose(const ParquetFooter& footer, std::string_view file) const;
  /** DataError unless the file is listed by its name without folders, with its number of rows. */
  void check_file(const std::string& path, int64_t rows) const;

 private:
  std::vector<std::string> columns(const char* group, const ParquetFooter& footer, std::string_view file) const;

  std::string name_;  // for messages
  bool by_name_;
  Json json_;
};

/** The text of the file for a part that is written in this layout. */
std::string parquet_metadata(const ParquetLayout& layout, const DataPart& part);

}  // namespace tercel::data
