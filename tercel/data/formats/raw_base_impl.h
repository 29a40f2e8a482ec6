// What the formats Raw and RawAsync have in common. Private.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "tercel/data/dataset.h"
#include "tercel/data/formats/raw_format.h"
#include "tercel/data/formats/raw_layout_impl.h"

namespace tercel::data {

/** A format of files of rows of equal size. */
class RawBase : public DatasetFormat {
 public:
  std::string_view name() const override { return types().format; }
  void check_sizes(const Dataset& dataset) const override;
  int64_t estimate_bytes(const Schema& schema, int64_t rows) const override;
  std::unique_ptr<RecordSource> open(const Dataset& dataset, const DataPart& part,
                                     const SourceOptions& options) const override;
  std::unique_ptr<DatasetWriter> create_writer(const Schema& schema, const WriterOptions& options) const override;

 protected:
  virtual RawTypes types() const = 0;
};

/**
 * Sets schema and parts of a dataset of bare files, and checks them. `num_samples` of the train files' rows belong to
 * it, `eval_num_samples` of the test files'; 0: all.
 */
void describe_raw_files(Dataset& dataset, const RawTypes& types, const RawFilesSpec& spec, int64_t num_samples = 0,
                        int64_t eval_num_samples = 0);

}  // namespace tercel::data
