#include "tercel/data/formats/norm_format.h"

#include <limits>
#include <utility>

#include "tercel/data/file_list.h"
#include "tercel/data/formats/formats_impl.h"
#include "tercel/data/formats/norm_layout_impl.h"
#include "tercel/data/formats/norm_source_impl.h"
#include "tercel/data/formats/norm_writer_impl.h"
#include "tercel/data/slot_sizes_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

class NormFormat final : public DatasetFormat {
 public:
  NormFormat() = default;
  explicit NormFormat(const NormOptions& options) : options_(options) {}

  std::string_view name() const override { return "norm"; }
  OptionTable option_table() const override { return tercel::option_table<NormOptions>(); }
  const void* options() const override { return &options_; }
  void* options() override { return &options_; }

  void check_sizes(const Dataset& dataset) const override {
    const NormLayout layout(dataset.schema, options_, false);
    for (const auto& [name, part] : dataset.parts())
      for (const DataFile& file : part.files) check_norm_size(dataset.path_of(file), file.bytes, file.rows, layout);
  }

  int64_t estimate_bytes(const Schema& schema, int64_t rows) const override {
    const NormLayout layout(schema, options_, false);
    int64_t bytes = 0;
    if (__builtin_mul_overflow(rows, layout.max_record_bytes, &bytes)) return std::numeric_limits<int64_t>::max();
    return bytes;
  }

  std::unique_ptr<RecordSource> open(const Dataset& dataset, const DataPart& part,
                                     const SourceOptions& options) const override {
    return std::make_unique<NormSource>(options_, dataset, part, options);
  }

  std::unique_ptr<DatasetWriter> create_writer(const Schema& schema, const WriterOptions& options) const override {
    schema.check(name());
    const NormLayout layout(schema, options_, options.binary_labels);
    check_writable(schema);
    return std::make_unique<NormWriter>(schema, options_, options);
  }

 private:
  /** Schemas of files that are read may be generous: actual records count. */
  void check_writable(const Schema& schema) const {
    const int64_t largest = norm_record_bytes(schema.label_dim, schema.dense_dim, schema.slot_num(), schema.max_nnz(),
                                              options_.key_type, CheckMode::None);
    TERCEL_CHECK(largest <= std::numeric_limits<int32_t>::max(), ConfigError, name(),
                 ": expected records of less than 2 GiB, found ", largest, " bytes");
    for (const Slot& slot : schema.slots)
      TERCEL_CHECK(
          slot.size == 0 || static_cast<uint64_t>(slot.first_key + slot.size - 1) <= max_key(options_.key_type),
          ConfigError, name(), ": slot '", printable(slot.name), "': expected keys up to ", max_key(options_.key_type),
          ", which fit in ", to_string(options_.key_type), ", found keys up to ", slot.first_key + slot.size - 1);
  }

  NormOptions options_;
};

DataPart part_from_list(const std::string& list, const NormLayout& layout) {
  DataPart part;
  part.file_list = list;
  for (const std::string& path : read_file_list(list)) {
    const std::unique_ptr<RandomAccessFile> file = open_data_file(path);
    DataFile record;
    record.path = path;
    record.bytes = file->size();
    record.rows = read_norm_header(*file, layout);
    check_norm_size(path, record.bytes, record.rows, layout);
    part.files.push_back(std::move(record));
  }
  return part;
}

}  // namespace

std::shared_ptr<const DatasetFormat> norm_format(const NormOptions& options) {
  return std::make_shared<NormFormat>(options);
}

Dataset dataset_from_norm_files(const NormSpec& spec) {
  constexpr std::string_view kOwner = "norm";
  check_options(spec, kOwner);
  const NormOptions options{spec.key_type, spec.check_mode};
  Dataset dataset;
  dataset.format = norm_format(options);
  Schema& schema = dataset.schema;
  schema.label_dim = spec.label_dim;
  schema.dense_dim = spec.dense_dim;
  const size_t slot_num = spec.nnz_per_slot.size();
  TERCEL_CHECK(spec.slot_size_array.empty() || spec.slot_size_array.size() == slot_num, ConfigError, "[", kOwner,
               "] option 'slot_size_array': expected none or ", slot_num, " sizes, one for each slot, found ",
               spec.slot_size_array.size());
  for (size_t s = 0; s < slot_num; ++s) {
    Slot slot;
    slot.name = str_cat({"slot", s});
    slot.hotness = spec.nnz_per_slot[s];
    schema.slots.push_back(std::move(slot));
  }
  set_slot_sizes(schema.slots, spec.slot_size_array, kOwner);
  schema.check(kOwner);
  const NormLayout layout(schema, options, false);
  dataset.train = part_from_list(spec.train_list, layout);
  if (!spec.valid_list.empty()) dataset.valid = part_from_list(spec.valid_list, layout);
  if (!spec.test_list.empty()) dataset.test = part_from_list(spec.test_list, layout);
  return dataset;
}

FormatEntry norm_entry() {
  return {
      "norm", "Norm files of HugeCTR's tools, which stay as they are and get a description",
      "data --train-list train.txt --test-list test.txt --dense-dim 13 --nnz-per-slot 1,1,2 "
      "--slot-size-array 1000,500,20 --key-type i64",
      []() -> std::unique_ptr<DatasetFormat> { return std::make_unique<NormFormat>(); },
      []() -> std::unique_ptr<FilesSpec> { return std::make_unique<SpecOf<NormSpec, &dataset_from_norm_files>>(); }};
}

}  // namespace tercel::data
