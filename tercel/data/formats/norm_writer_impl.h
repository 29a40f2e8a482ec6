// Writes rows as files in HugeCTR's Norm format, byte for byte. Private.
#pragma once

#include "tercel/data/formats/norm_format.h"
#include "tercel/data/formats/record_writer_impl.h"

namespace tercel::data {

class NormWriter final : public RecordWriter {
 public:
  /** The schema is one that the format can hold. */
  NormWriter(const Schema& schema, const NormOptions& norm, const WriterOptions& options);

 protected:
  void begin_file(RecordFile& file, int64_t expected_rows) override;
  void end_file(RecordFile& file, int64_t rows, int64_t expected_rows) override;
  void put_row(const RowView& row, RecordFile& file) override;

 private:
  /** The framed header of a file with so many rows. */
  std::string header(int64_t rows) const;

  NormOptions norm_;
};

}  // namespace tercel::data
