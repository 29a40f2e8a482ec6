#include "tercel/data/formats/parquet_format.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tercel/data/formats/formats_impl.h"
#include "tercel/data/formats/parquet_layout_impl.h"
#include "tercel/data/formats/parquet_metadata_impl.h"
#include "tercel/data/formats/parquet_source_impl.h"
#include "tercel/data/formats/parquet_writer_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

// Magic numbers, and the length of the metadata.
constexpr int64_t kSmallestFile = 12;
// Headers of pages, and what the metadata says of a column of a row group.
constexpr int64_t kColumnBytes = 2048;

/** Row groups, codecs and encodings of files, of all their columns together. */
struct ParquetTotals {
  int64_t row_groups = 0, least_rows = std::numeric_limits<int64_t>::max(), most_rows = 0, uncompressed = 0;
  uint32_t codecs = 0, encodings = 0;  // bit i: codec or encoding i occurs

  void add(const ParquetFooter& footer) {
    for (const ParquetRowGroup& group : footer.row_groups) {
      ++row_groups;
      least_rows = std::min(least_rows, group.rows);
      most_rows = std::max(most_rows, group.rows);
      uncompressed += group.uncompressed_bytes();
      for (const ParquetChunk& chunk : group.chunks) {
        codecs |= uint32_t{1} << chunk.codec;
        encodings |= chunk.encodings;
      }
    }
  }
  void append_to(std::vector<FileFact>& facts) const {
    facts.push_back(FileFact::number("row_groups", row_groups));
    if (row_groups == 0) return;
    if (least_rows == most_rows)
      facts.push_back(FileFact::number("rows_of_row_groups", most_rows));
    else
      facts.push_back({"rows_of_row_groups", {str_cat({least_rows, " to ", most_rows})}});
    facts.push_back(FileFact::number("uncompressed_bytes", uncompressed));
    std::string names;
    for (uint8_t codec = 0; codec < 32; ++codec)
      if ((codecs >> codec & 1) != 0) names += (names.empty() ? "" : ", ") + parquet_codec_name(codec);
    facts.push_back({"codecs", {names}});
    facts.push_back({"encodings", {parquet_encoding_names(encodings)}});
  }
};

/** "name: list<int64>, may be missing". */
FileFact columns_of(const ParquetFooter& footer) {
  FileFact fact{"columns", {}, FileFact::Kind::List};
  for (const ParquetColumnInfo& column : footer.columns)
    fact.values.push_back(
        str_cat({printable(column.name), ": ", column.type, column.nullable ? ", may be missing" : ""}));
  return fact;
}

std::vector<FileFact> describe_parquet_file(const std::string& path) {
  const std::unique_ptr<RandomAccessFile> file = open_data_file(path);
  const ParquetFooter footer = read_parquet_footer(*file);
  std::vector<FileFact> facts{FileFact::number("rows", footer.rows), FileFact::number("bytes", file->size())};
  facts.push_back({"created_by", {footer.created_by}});
  ParquetTotals totals;
  totals.add(footer);
  totals.append_to(facts);
  facts.push_back(columns_of(footer));
  return facts;
}

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
    for (const auto& [part_name, part] : dataset.parts())
      for (const DataFile& file : part.files)
        TERCEL_CHECK(file.bytes >= kSmallestFile, DataError, printable(dataset.path_of(file)),
                     ": expected a Parquet file, at least ", kSmallestFile, " bytes, found ", file.bytes);
  }

  int64_t estimate_bytes(const Schema& schema, int64_t rows) const override {
    const int64_t columns =
        schema.label_dim + schema.dense_dim + 2 * schema.slot_num() + static_cast<int64_t>(schema.columns.size());
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

  bool is_compressed() const override { return true; }

  std::vector<FileFact> describe_part(const Dataset& dataset, const DataPart& part) const override {
    ParquetTotals totals;
    FileFact columns;
    for (const DataFile& file : part.files) {
      const ParquetFooter footer = read_parquet_footer(*open_data_file(dataset.path_of(file)));
      totals.add(footer);
      if (columns.values.empty()) columns = columns_of(footer);
    }
    std::vector<FileFact> facts;
    totals.append_to(facts);
    facts.push_back(std::move(columns));
    return facts;
  }

  // Files that Tercel wrote have it beside them, and a checksum; beside those of other tools it may be anything.
  void verify_part(const Dataset& dataset, const DataPart& part) const override {
    if (part.files.empty() || part.files.front().checksum.empty()) return;
    const std::string folder = parent_path(dataset.path_of(part.files.front()));
    const std::string path = join_path(folder, kParquetMetadataFile);
    TERCEL_CHECK(data_path_info(path), DataError, printable(path),
                 ": expected the file that HugeCTR reads beside the data files, found none");
    const ParquetMetadata metadata(path, /*by_name=*/false);
    for (const DataFile& file : part.files) metadata.check_file(file.path, file.rows);
    const std::string first = dataset.path_of(part.files.front());
    const ColumnChoice found = metadata.choose(read_parquet_footer(*open_data_file(first)), printable(first));
    const ParquetLayout layout = ParquetLayout::of(dataset.schema, options_);
    ColumnChoice expected;
    for (const ParquetValues& column : layout.labels) expected.labels.push_back(column.name);
    for (const ParquetValues& column : layout.dense) expected.dense.push_back(column.name);
    for (const ParquetKeys& column : layout.keys) expected.keys.push_back(column.name);
    TERCEL_CHECK(found == expected, DataError, printable(path),
                 ": expected the indices of the labels, dense values and slots of the dataset's description, found "
                 "those of other columns");
  }

  std::unique_ptr<RecordSource> open(const Dataset& dataset, const DataPart& part,
                                     const SourceOptions& options) const override {
    check();
    return std::make_unique<ParquetSource>(options_, dataset, part, options);
  }

  std::unique_ptr<DatasetWriter> create_writer(const Schema& schema, const WriterOptions& options) const override {
    check();
    schema.check(name());
    const bool named = !options_.keys.empty();
    for (const ParquetKeys& column : options_.keys)
      TERCEL_CHECK(
          options_.key_type == KeyType::I64 || column.type == ElementType::U32, ConfigError, "[", name(),
          "] option 'key_type': expected none beside the columns of the source, which keep their types, found ",
          to_string(options_.key_type), ", and column '", printable(column.name), "' of type ",
          arrow_type_name(column.type));
    for (const Slot& slot : schema.slots)
      TERCEL_CHECK(named || slot.size == 0 ||
                       static_cast<uint64_t>(slot.first_key + slot.size - 1) <= max_key(options_.key_type),
                   ConfigError, name(), ": slot '", printable(slot.name), "': expected keys up to ",
                   max_key(options_.key_type), ", which fit in ", to_string(options_.key_type), ", found keys up to ",
                   slot.first_key + slot.size - 1);
    return std::make_unique<ParquetWriter>(schema, options_, options);
  }

 private:
  void check() const {
    check_options(options_, name());
    check_fills(options_.fill_null_dense, options_.fill_null_key, name());
  }

  ParquetOptions options_;
};

}  // namespace

std::shared_ptr<const DatasetFormat> parquet_format(const ParquetOptions& options) {
  return std::make_shared<ParquetFormat>(options);
}

FormatEntry parquet_entry() {
  return {"parquet",
          "Parquet files of other tools, which stay as they are and get a description",
          "train/part-0.parquet train/part-1.parquet data --test test --label click --dense age,hours --categorical "
          "user,item,genres "
          "--slot-size-array 1000,500,20",
          []() -> std::unique_ptr<DatasetFormat> { return std::make_unique<ParquetFormat>(); },
          []() -> std::unique_ptr<FilesSpec> {
            return std::make_unique<SpecOf<ParquetSpec, &dataset_from_parquet_files>>();
          },
          &describe_parquet_file,
          ".parquet",
          "PAR1"};
}

}  // namespace tercel::data
