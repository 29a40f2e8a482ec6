// Parquet files of plain columns, one value in each row: tables for other programs, not datasets.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::data {

/** The values of a column: int64, float, or string. */
enum class ValueType : uint8_t { I64, F32, Text };

constexpr auto enum_names(ValueType) {
  return std::to_array<EnumName<ValueType>>(
      {{ValueType::I64, "i64"}, {ValueType::F32, "f32"}, {ValueType::Text, "text"}});
}

/** A column of a table. */
struct TableColumn {
  std::string name;
  ValueType type = ValueType::F32;
};

/** Values of consecutive rows in a column; only the list of its type has any. */
struct TableValues {
  Span<int64_t> integers = {};
  Span<float> floats = {};
  Span<std::string> texts = {};
};

class TERCEL_API ParquetTableWriter {
 public:
  /** ConfigError unless names differ. RuntimeError without the Arrow module. The file appears on commit(). */
  ParquetTableWriter(const std::string& path, const std::vector<TableColumn>& columns);
  ~ParquetTableWriter();
  ParquetTableWriter(const ParquetTableWriter&) = delete;
  ParquetTableWriter& operator=(const ParquetTableWriter&) = delete;

  /**
   * Appends rows: the values of each column, equally many. They are in memory until a row group of 65,536 is complete.
   * DataError for text that is not UTF-8, which a column of text cannot hold.
   */
  void write(Span<TableValues> columns);
  /** Makes the file durable under its name; no more can be written. */
  void commit();

 private:
  struct State;
  void write_group();

  std::unique_ptr<State> state_;
};

}  // namespace tercel::data
