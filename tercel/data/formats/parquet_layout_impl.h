// What the columns of a dataset's Parquet files are. Private.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/arrow_columns_impl.h"
#include "tercel/data/formats/parquet_footer.h"
#include "tercel/data/formats/parquet_format.h"
#include "tercel/data/record_source_impl.h"
#include "tercel/data/schema.h"

namespace tercel::data {

struct ParquetLayout {
  std::vector<ParquetValues> labels, dense;
  std::vector<ParquetKeys> keys;  // of each slot
  std::vector<Column> columns;    // further ones

  /** As files of the schema are written. */
  static ParquetLayout written(const Schema& schema, KeyType key_type);
  /** That of the options, or as written where they name no columns; ConfigError if it does not fit the schema. */
  static ParquetLayout of(const Schema& schema, const ParquetOptions& options);

  /** To decode all but the further columns. */
  ColumnPlan plan(const ParquetOptions& options) const;
  /**
   * The shape of the batches that a reader asks for. Its further columns are added to the plan; ConfigError that starts
   * with `owner` for one that is not there.
   */
  BatchShape add_columns(const Schema& schema, const SourceOptions& asked, std::string_view owner,
                         ColumnPlan& plan) const;
  /** What is added to the keys of each slot. */
  std::vector<int64_t> offsets() const;
  /** DataError unless a file has these columns, of these types. */
  void check(const ParquetFooter& footer, std::string_view file) const;
};

/** ConfigError unless there is one value at most for each, which f32 holds. */
void check_fills(const std::vector<double>& fill_null_dense, const std::vector<int64_t>& fill_null_key,
                 std::string_view owner);

/** Bytes that a row of a row group takes when it is decoded, at least 1. */
int64_t decoded_row_bytes(const ColumnPlan& plan, const ParquetFooter& footer, const ParquetRowGroup& group,
                          std::string_view file);

}  // namespace tercel::data
