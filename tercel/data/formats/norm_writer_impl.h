// Writes rows as files in HugeCTR's Norm format, byte for byte. Private.
#pragma once

#include <memory>

#include "tercel/data/dataset_writer.h"
#include "tercel/data/formats/norm_format.h"

namespace tercel::data {

class NormWriter final : public DatasetWriter {
 public:
  /** The schema is one that the format can hold. */
  NormWriter(const Schema& schema, const NormOptions& norm, const WriterOptions& options);
  ~NormWriter() override;
  NormWriter(const NormWriter&) = delete;
  NormWriter& operator=(const NormWriter&) = delete;

  void write(const RowBlock& block) override;
  int64_t rows() const noexcept override;
  DataPart finish() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tercel::data
