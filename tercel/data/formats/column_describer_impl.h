// Describes tables whose columns are known by name: Parquet files and Arrow tables in memory. Private.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/column_spec.h"
#include "tercel/data/formats/parquet_footer.h"
#include "tercel/data/formats/parquet_format.h"
#include "tercel/data/schema.h"
#include "tercel/util/span.h"

namespace tercel::data {

/** Columns by name. */
struct ColumnChoice {
  std::vector<std::string> labels, dense, keys;

  friend bool operator==(const ColumnChoice&, const ColumnChoice&) = default;
};

/** Makes the schema, and the options that say what is read from which column. Tables derive their own. */
class ColumnDescriber {
 protected:
  /** The spec must outlive it. Errors about options start with "[<owner>]". */
  ColumnDescriber(const ColumnSpec& spec, std::string_view owner) : columns_(spec), owner_(owner) {}
  virtual ~ColumnDescriber();

  /** For messages. */
  virtual const std::string& table_name() const = 0;
  virtual Span<ParquetColumnInfo> table_columns() const = 0;
  /** Null if there is none; DataError if there are several of the name. */
  virtual const ParquetColumnInfo* find_column(const std::string& name) const = 0;
  /** Elements of the lists of a column of dense values; 1 if there are no rows. */
  virtual int64_t list_width(const std::string& name) const = 0;

  /** ConfigError for columns that are not there or not of the right types. Sets nnz_per_slot where it is given. */
  void describe_columns(const ColumnChoice& choice);

  ParquetOptions options_;
  Schema schema_;

 private:
  void check_choice(const ColumnChoice& choice) const;
  const ParquetColumnInfo& find(const std::string& name) const;
  [[noreturn]] void refuse(const ParquetColumnInfo& column, std::string_view expected) const;
  ParquetValues values_of(const std::string& name) const;
  void add_slot(const std::string& name);
  void add_column(const std::string& name);
  void set_sizes();
  void set_hotness();

  const ColumnSpec& columns_;
  std::string_view owner_;
};

}  // namespace tercel::data
