// Writes rows as Parquet files that HugeCTR reads, with their _metadata.json. Private.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tercel/data/formats/parquet_layout_impl.h"
#include "tercel/data/formats/parquet_output_impl.h"
#include "tercel/data/formats/record_writer_impl.h"

namespace tercel::data {

class ParquetWriter final : public RecordWriter {
 public:
  ParquetWriter(const Schema& schema, const ParquetOptions& parquet, const WriterOptions& options);
  ~ParquetWriter() override;

 private:
  struct Columns;

  void begin_file(RecordFile& file, int64_t expected_rows) override;
  void end_file(RecordFile& file, int64_t rows, int64_t expected_rows) override;
  void check_row(const RowView& row) override;
  void put_row(const RowView& row, RecordFile& file) override;
  void end_part(const DataPart& part) override;
  void clear_columns();
  void write_group();

  ParquetLayout layout_;
  std::vector<ParquetValues> values_;  // labels, then dense values
  ParquetOptions parquet_;
  std::string folder_, prefix_;
  std::unique_ptr<ParquetOutput> output_;         // of the open file
  std::vector<std::vector<uint8_t>> row_values_;  // of the row that was checked, as the columns hold them
  std::unique_ptr<Columns> columns_;              // of the rows that are not written yet
};

}  // namespace tercel::data
