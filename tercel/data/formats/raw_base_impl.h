// What the formats Raw and RawAsync have in common. Private.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
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

/** Files of a part, and how many of their rows belong to it; 0: all. */
struct RawFiles {
  const std::vector<std::string>& paths;
  int64_t num_samples = 0;
  std::string_view option = {};  // that gave the number
};

/** Sets schema and parts of a dataset of bare files, and checks them. */
void describe_raw_files(Dataset& dataset, const RawTypes& types, const std::vector<int64_t>& nnz_per_slot,
                        const std::vector<int64_t>& slot_size_array, const RawFiles& train, const RawFiles& valid,
                        const RawFiles& test);

}  // namespace tercel::data
