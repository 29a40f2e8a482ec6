// Writes rows as files of rows of equal size: Raw and RawAsync. Private.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/data/formats/raw_layout_impl.h"
#include "tercel/data/formats/record_writer_impl.h"

namespace tercel::data {

class RawWriter final : public RecordWriter {
 public:
  /** ConfigError for a schema that files of these types cannot hold. */
  RawWriter(const Schema& schema, const RawTypes& types, const WriterOptions& options);

 protected:
  void check_row(const RowView& row) override;
  void put_row(const RowView& row, RecordFile& file) override;

 private:
  RawLayout layout_;
  std::vector<int32_t> integers_;  // of the row that was checked last: labels and dense values that are written as i32
};

}  // namespace tercel::data
