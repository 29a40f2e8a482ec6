// Parquet files: columns of labels, dense values and keys, as HugeCTR reads them, and as pandas, polars, DuckDB or
// Spark write them.
//
// docs/formats/parquet.md says which columns are read as what.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tercel/data/column_spec.h"
#include "tercel/data/dataset.h"
#include "tercel/data/dataset_format.h"
#include "tercel/data/element_type.h"
#include "tercel/data/formats/key_type.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/options.h"

namespace tercel::data {

enum class ParquetCodec : uint8_t { None, Snappy, Gzip, Brotli, Zstd, Lz4 };

constexpr auto enum_names(ParquetCodec) {
  return std::to_array<EnumName<ParquetCodec>>({{ParquetCodec::None, "none"},
                                                {ParquetCodec::Snappy, "snappy"},
                                                {ParquetCodec::Gzip, "gzip"},
                                                {ParquetCodec::Brotli, "brotli"},
                                                {ParquetCodec::Zstd, "zstd"},
                                                {ParquetCodec::Lz4, "lz4"}});
}

/** A column of labels or dense values. */
struct ParquetValues {
  std::string name;
  ElementType type = ElementType::F32;  // of the values in the files; they are read as f32
  bool list = false;
  int64_t width = 1;  // values of a row

  static constexpr auto fields() {
    return option_list(option_field<&ParquetValues::name>("name", "name of the column", required()),
                       option_field<&ParquetValues::type>("type", "of its values in the files"),
                       option_field<&ParquetValues::list>("list", "a row has a list of values"),
                       option_field<&ParquetValues::width>("width", "values of a row", at_least(1), at_most(kMaxDim)));
  }
  friend bool operator==(const ParquetValues&, const ParquetValues&) = default;
};

/** A column of the keys of a slot. */
struct ParquetKeys {
  std::string name;
  ElementType type = ElementType::I64;
  bool list = false;
  int64_t offset = 0;   // is added to each key
  std::string weights;  // the column of the keys' weights, or empty

  static constexpr auto fields() {
    return option_list(option_field<&ParquetKeys::name>("name", "name of the column", required()),
                       option_field<&ParquetKeys::type>("type", "of its keys in the files"),
                       option_field<&ParquetKeys::list>("list", "a row has a list of keys"),
                       option_field<&ParquetKeys::offset>("offset", "is added to each key", at_least(0)),
                       option_field<&ParquetKeys::weights>("weights", "column of the keys' weights, or empty"));
  }
  friend bool operator==(const ParquetKeys&, const ParquetKeys&) = default;
};

/** What is read from which column of a table. */
struct TableColumns {
  MissingKeys missing_keys = MissingKeys::Empty;
  std::vector<double> fill_null_dense;  // none or one
  std::vector<int64_t> fill_null_key;   // none or one
  std::vector<ParquetValues> labels;    // these three empty: as files are written, by the names in the schema
  std::vector<ParquetValues> dense;
  std::vector<ParquetKeys> keys;

  static constexpr auto fields() {
    return option_list(
        option_field<&TableColumns::missing_keys>("missing_keys", "what a missing key is when files are read"),
        option_field<&TableColumns::fill_null_dense>(
            "fill_null_dense", "read in place of missing labels and dense values; none: they are errors"),
        option_field<&TableColumns::fill_null_key>("fill_null_key",
                                                   "read in place of missing keys; none: see missing_keys"),
        option_field<&TableColumns::labels>("label_columns", "columns of labels; none: as they are written"),
        option_field<&TableColumns::dense>("dense_columns", "columns of dense values; none: as they are written"),
        option_field<&TableColumns::keys>("key_columns", "columns of keys; none: as they are written"));
  }
  friend bool operator==(const TableColumns&, const TableColumns&) = default;
};

/** How Parquet files are written, and what is read from which column. */
struct ParquetOptions : TableColumns {
  KeyType key_type = KeyType::I64;
  ParquetCodec codec = ParquetCodec::Snappy;
  bool dictionary = true;
  int64_t row_group_rows = int64_t{1} << 16;

  static constexpr auto fields() {
    return option_list(option_field<&ParquetOptions::key_type>("key_type", "width of the keys that are written"),
                       option_field<&ParquetOptions::codec>("codec", "compression of what is written"),
                       option_field<&ParquetOptions::dictionary>(
                           "dictionary", "write columns of few different values as dictionaries"),
                       option_field<&ParquetOptions::row_group_rows>(
                           "row_group_rows", "rows of the row groups that are written", at_least(1), at_most(1 << 30)),
                       TableColumns::fields());
  }
  friend bool operator==(const ParquetOptions&, const ParquetOptions&) = default;
};

/** The format of a dataset of Parquet files. */
TERCEL_API std::shared_ptr<const DatasetFormat> parquet_format(const ParquetOptions& options = {});

/** Parquet files of other tools: which columns are what. */
struct ParquetSpec : ColumnSpec {
  std::vector<std::string> train;  // files, patterns, folders, or HugeCTR file lists (.txt)
  std::vector<std::string> valid;
  std::vector<std::string> test;
  std::string metadata;  // NVTabular's _metadata.json; empty: the one beside the first file, unless columns are named
  bool by_name = false;

  static constexpr auto fields() {
    return option_list(
        option_field<&ParquetSpec::train>(
            "train", "files of the train part, in order; also patterns, folders, and HugeCTR file lists (.txt)",
            required()),
        option_field<&ParquetSpec::valid>("valid", "the same of the validation part, may be empty"),
        option_field<&ParquetSpec::test>("test", "the same of the test part, may be empty"),
        option_field<&ParquetSpec::metadata>(
            "metadata",
            "_metadata.json of the train part; empty: the one beside its first file, unless columns are named"),
        option_field<&ParquetSpec::by_name>("by_name", "find the columns of _metadata.json by name instead of index"),
        ColumnSpec::fields());
  }
};

/**
 * Describes Parquet files: reads their footers, dense list columns up to the first list, and list columns of keys whose
 * nnz_per_slot is not given.
 */
TERCEL_API Dataset dataset_from_parquet_files(const ParquetSpec& spec);

/**
 * The files of sources that are Parquet files (named *.parquet or *.pq), patterns of them, or folders with them: those
 * that dataset_from_parquet_files() reads, in its order. None if a source is anything else. IoError for a folder or a
 * pattern without files.
 */
TERCEL_API std::optional<std::vector<std::string>> parquet_files_of(const std::vector<std::string>& sources);

}  // namespace tercel::data
