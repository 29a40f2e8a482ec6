#include "tercel/data/formats/rawasync_format.h"

#include "tercel/data/formats/formats_impl.h"
#include "tercel/data/formats/raw_base_impl.h"
#include "tercel/util/error.h"

namespace tercel::data {

namespace {

RawTypes types_of(const RawAsyncOptions& options) {
  RawTypes types;
  types.format = "rawasync";
  types.float_option = "is_dense_float";
  types.labels = NumberType::I32;
  types.dense = options.is_dense_float ? NumberType::F32 : NumberType::I32;
  types.keys = options.key_type;
  types.max_key = max_key(options.key_type);
  types.slot_offsets = options.slot_offsets;
  return types;
}

class RawAsyncFormat final : public RawBase {
 public:
  explicit RawAsyncFormat(const RawAsyncOptions& options = {}) : options_(options) {}

  OptionTable option_table() const override { return tercel::option_table<RawAsyncOptions>(); }
  const void* options() const override { return &options_; }
  void* options() override { return &options_; }

 protected:
  RawTypes types() const override { return types_of(options_); }

 private:
  RawAsyncOptions options_;
};

}  // namespace

std::shared_ptr<const DatasetFormat> rawasync_format(const RawAsyncOptions& options) {
  return std::make_shared<RawAsyncFormat>(options);
}

Dataset dataset_from_rawasync_files(const RawAsyncSpec& spec) {
  check_options(spec, "rawasync");
  const RawAsyncOptions options{spec.is_dense_float, spec.key_type, spec.slot_offsets};
  Dataset dataset;
  dataset.format = rawasync_format(options);
  describe_raw_files(dataset, types_of(options), spec);
  return dataset;
}

FormatEntry rawasync_entry() {
  return {"rawasync", "RawAsync files of HugeCTR's tools, which stay as they are and get a description",
          "train.bin data --test val.bin --dense-dim 13 --nnz-per-slot 3,2,1 --slot-size-array 1000,500,20",
          []() -> std::unique_ptr<DatasetFormat> { return std::make_unique<RawAsyncFormat>(); },
          []() -> std::unique_ptr<FilesSpec> {
            return std::make_unique<SpecOf<RawAsyncSpec, &dataset_from_rawasync_files>>();
          }};
}

}  // namespace tercel::data
