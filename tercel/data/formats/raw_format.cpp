#include "tercel/data/formats/raw_format.h"

#include <limits>

#include "tercel/data/formats/formats_impl.h"
#include "tercel/data/formats/raw_base_impl.h"
#include "tercel/util/error.h"

namespace tercel::data {

namespace {

RawTypes types_of(const RawOptions& options) {
  RawTypes types;
  types.format = "raw";
  types.float_option = "float_label_dense";
  types.labels = types.dense = options.float_label_dense ? NumberType::F32 : NumberType::I32;
  // Keys are signed: larger ones would be negative.
  types.max_key = std::numeric_limits<int32_t>::max();
  types.slot_offsets = options.slot_offsets;
  return types;
}

class RawFormat final : public RawBase {
 public:
  explicit RawFormat(const RawOptions& options = {}) : options_(options) {}

  OptionTable option_table() const override { return tercel::option_table<RawOptions>(); }
  const void* options() const override { return &options_; }
  void* options() override { return &options_; }

 protected:
  RawTypes types() const override { return types_of(options_); }

 private:
  RawOptions options_;
};

}  // namespace

std::shared_ptr<const DatasetFormat> raw_format(const RawOptions& options) {
  return std::make_shared<RawFormat>(options);
}

Dataset dataset_from_raw_files(const RawSpec& spec) {
  check_options(spec, "raw");
  const RawOptions options{spec.float_label_dense, spec.slot_offsets};
  Dataset dataset;
  dataset.format = raw_format(options);
  describe_raw_files(dataset, types_of(options), spec, spec.num_samples, spec.eval_num_samples);
  return dataset;
}

FormatEntry raw_entry() {
  return {"raw", "Raw files of HugeCTR's tools, which stay as they are and get a description",
          "train.bin data --test test.bin --dense-dim 13 --nnz-per-slot 1,1,1 --slot-size-array 1000,500,20",
          []() -> std::unique_ptr<DatasetFormat> { return std::make_unique<RawFormat>(); },
          []() -> std::unique_ptr<FilesSpec> { return std::make_unique<SpecOf<RawSpec, &dataset_from_raw_files>>(); }};
}

}  // namespace tercel::data
