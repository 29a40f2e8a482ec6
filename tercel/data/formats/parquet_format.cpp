#include "tercel/data/formats/parquet_format.h"

#include <limits>
#include <utility>

#include "tercel/data/formats/formats_impl.h"
#include "tercel/data/formats/parquet_layout_impl.h"
#include "tercel/data/formats/parquet_source_impl.h"
#include "tercel/data/formats/parquet_writer_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

// Magic numbers, and the length of the metadata.
constexpr int64_t kSmallestFile = 12;
// Headers of pages, and what the metadata says of a column of a row group.
constexpr int64_t kColumnBytes = 2048;

class ParquetFormat final : public DatasetFormat {
 public:
  ParquetFormat() = default;
  explicit ParquetFormat(ParquetOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "parquet"; }
  OptionTable option_table() const override { return tercel::option_table<ParquetOptions>(); }
  const void* options() const override { return &options_; }
  void* options() override { return &options_; }

  void check_sizes(const Dataset& dataset) const override {
    check();
    static_cast<void>(ParquetLayout::of(dataset.schema, options_));
    for (const DataPart* part : {&dataset.train, &dataset.test})
      for (const DataFile& file : part->files)
        TERCEL_CHECK(file.bytes >= kSmallestFile, DataError, printable(dataset.path_of(file)),
                     ": expected a Parquet file, at least ", kSmallestFile, " bytes, found ", file.bytes);
  }

  int64_t estimate_bytes(const Schema& schema, int64_t rows) const override {
    const int64_t columns = schema.label_dim + schema.dense_dim + 2 * schema.slot_num() +
                            static_cast<int64_t>(schema.columns.size());
    int64_t weights = 0;
    for (const Slot& slot : schema.slots) weights += slot.weighted ? 4 * slot.hotness : 0;
    const int64_t row_bytes = 4 * (schema.label_dim + schema.dense_dim) + 8 * schema.max_nnz() + weights +
                              4 * schema.slot_num() + 8 * static_cast<int64_t>(schema.columns.size());
    int64_t values = 0, headers = 0, sum = 0;
    if (__builtin_mul_overflow(rows, row_bytes, &values) ||
        __builtin_mul_overflow(1 + rows / options_.row_group_rows, columns * kColumnBytes, &headers) ||
        __builtin_add_overflow(values, headers, &sum))
      return std::numeric_limits<int64_t>::max();
    return sum;
  }

  std::unique_ptr<RecordSource> open(const Dataset& dataset, const DataPart& part,
                                     const SourceOptions& options) const override {
    check();
    return std::make_unique<ParquetSource>(options_, dataset, part, options);
  }

  std::unique_ptr<DatasetWriter> create_writer(const Schema& schema, const WriterOptions& options) const override {
    check();
    schema.check(name());
    for (const Slot& slot : schema.slots)
      TERCEL_CHECK(
          slot.size == 0 || static_cast<uint64_t>(slot.first_key + slot.size - 1) <= max_key(options_.key_type),
          ConfigError, name(), ": slot '", printable(slot.name), "': expected keys up to ", max_key(options_.key_type),
          ", which fit in ", to_string(options_.key_type), ", found keys up to ", slot.first_key + slot.size - 1);
    return std::make_unique<ParquetWriter>(schema, options_, options);
  }

 private:
  void check() const {
    check_options(options_, name());
    TERCEL_CHECK(options_.fill_null_dense.size() <= 1 && options_.fill_null_key.size() <= 1, ConfigError, "[", name(),
                 "] options 'fill_null_dense' and 'fill_null_key': expected one value at most, found ",
                 std::max(options_.fill_null_dense.size(), options_.fill_null_key.size()));
  }

  ParquetOptions options_;
};

}  // namespace

std::shared_ptr<const DatasetFormat> parquet_format(const ParquetOptions& options) {
  return std::make_shared<ParquetFormat>(options);
}

FormatEntry parquet_entry() {
  return {"parquet", "Parquet files of other tools, which stay as they are and get a description",
          "--train 'train/*.parquet' --test test --label click --dense age,hours --categorical user,item,genres "
          "--slot-size-array 1000,500,20",
          []() -> std::unique_ptr<DatasetFormat> { return std::make_unique<ParquetFormat>(); },
          []() -> std::unique_ptr<FilesSpec> {
            return std::make_unique<SpecOf<ParquetSpec, &dataset_from_parquet_files>>();
          }};
}

}  // namespace tercel::data
