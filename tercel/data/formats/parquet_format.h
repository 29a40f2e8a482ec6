// Parquet files: columns of labels, dense values and keys, as HugeCTR reads them, and as pandas, polars, DuckDB or
// Spark write them.
//
// docs/formats/parquet.md says which columns are read as what.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

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

/** What a missing key (null) is: an error with its row, or a bag without keys. */
enum class MissingKeys : uint8_t { Error, Empty };

constexpr auto enum_names(MissingKeys) {
  return std::to_array<EnumName<MissingKeys>>({{MissingKeys::Error, "error"}, {MissingKeys::Empty, "empty"}});
}

/** A column of labels or dense values. */
struct ParquetValues {
  std::string name;
  ElementType type = ElementType::F32;  // of the values in the files; they are read as f32
  bool list = false;
  int64_t width = 1;  // values of a row

  static constexpr auto fields() {
    return std::tuple(Field{"name", &ParquetValues::name, "name of the column", required()},
                      Field{"type", &ParquetValues::type, "of its values in the files"},
                      Field{"list", &ParquetValues::list, "a row has a list of values"},
                      Field{"width", &ParquetValues::width, "values of a row", at_least(1), at_most(kMaxDim)});
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
    return std::tuple(Field{"name", &ParquetKeys::name, "name of the column", required()},
                      Field{"type", &ParquetKeys::type, "of its keys in the files"},
                      Field{"list", &ParquetKeys::list, "a row has a list of keys"},
                      Field{"offset", &ParquetKeys::offset, "is added to each key", at_least(0)},
                      Field{"weights", &ParquetKeys::weights, "column of the keys' weights, or empty"});
  }
  friend bool operator==(const ParquetKeys&, const ParquetKeys&) = default;
};

/** How Parquet files are written, and what is read from which column. */
struct ParquetOptions {
  KeyType key_type = KeyType::I64;
  ParquetCodec codec = ParquetCodec::Snappy;
  bool dictionary = true;
  int64_t row_group_rows = int64_t{1} << 16;
  MissingKeys missing_keys = MissingKeys::Empty;
  std::vector<double> fill_null_dense;  // none or one
  std::vector<int64_t> fill_null_key;   // none or one
  std::vector<ParquetValues> labels;    // these three empty: as files are written, by the names in the schema
  std::vector<ParquetValues> dense;
  std::vector<ParquetKeys> keys;

  static constexpr auto fields() {
    return std::tuple(
        Field{"key_type", &ParquetOptions::key_type, "width of the keys that are written"},
        Field{"codec", &ParquetOptions::codec, "compression of what is written"},
        Field{"dictionary", &ParquetOptions::dictionary, "write columns of few different values as dictionaries"},
        Field{"row_group_rows", &ParquetOptions::row_group_rows, "rows of the row groups that are written", at_least(1),
              at_most(1 << 30)},
        Field{"missing_keys", &ParquetOptions::missing_keys, "what a missing key is when files are read"},
        Field{"fill_null_dense", &ParquetOptions::fill_null_dense,
              "read in place of missing labels and dense values; none: they are errors"},
        Field{"fill_null_key", &ParquetOptions::fill_null_key, "read in place of missing keys; none: see missing_keys"},
        Field{"label_columns", &ParquetOptions::labels, "columns of labels; none: as they are written"},
        Field{"dense_columns", &ParquetOptions::dense, "columns of dense values; none: as they are written"},
        Field{"key_columns", &ParquetOptions::keys, "columns of keys; none: as they are written"});
  }
  friend bool operator==(const ParquetOptions&, const ParquetOptions&) = default;
};

/** The format of a dataset of Parquet files. */
TERCEL_API std::shared_ptr<const DatasetFormat> parquet_format(const ParquetOptions& options = {});

/** Parquet files of other tools: which columns are what. */
struct ParquetSpec {
  std::vector<std::string> train;  // files, patterns, folders, or HugeCTR file lists (.txt)
  std::vector<std::string> valid;
  std::vector<std::string> test;
  std::string metadata;  // NVTabular's _metadata.json; empty: the one beside the first file, unless columns are named
  bool by_name = false;
  std::vector<std::string> label, dense, categorical;
  std::vector<std::string> weighted;  // categorical columns whose keys have weights, in the column NAME_weight
  std::vector<std::string> columns;   // further columns
  std::vector<int64_t> nnz_per_slot;  // none: 1, and for lists the most that the files have; one: for all slots
  std::vector<int64_t> slot_size_array;
  bool integers = false;
  MissingKeys missing_keys = MissingKeys::Error;
  std::vector<double> fill_null_dense;
  std::vector<int64_t> fill_null_key;

  static constexpr auto fields() {
    return std::tuple(
        Field{"train", &ParquetSpec::train,
              "files of the train part, in order; also patterns, folders, and HugeCTR file lists (.txt)", required()},
        Field{"valid", &ParquetSpec::valid, "the same of the validation part, may be empty"},
        Field{"test", &ParquetSpec::test, "the same of the test part, may be empty"},
        Field{"metadata", &ParquetSpec::metadata,
              "_metadata.json of the train part; empty: the one beside its first file, unless columns are named"},
        Field{"by_name", &ParquetSpec::by_name, "find the columns of _metadata.json by name instead of index"},
        Field{"label", &ParquetSpec::label, "columns of labels"},
        Field{"dense", &ParquetSpec::dense, "columns of dense values"},
        Field{"categorical", &ParquetSpec::categorical, "columns of keys, a slot each"},
        Field{"weighted", &ParquetSpec::weighted, "those of them whose keys have weights, in a column NAME_weight"},
        Field{"columns", &ParquetSpec::columns, "further columns to be read beside the inputs of models"},
        Field{"nnz_per_slot", &ParquetSpec::nnz_per_slot,
              "for each slot, the most keys that a row has in it; one: for all; none: found by reading", at_least(1)},
        Field{"slot_size_array", &ParquetSpec::slot_size_array,
              "keys of each slot, by which those of later ones are offset; 0: as the next; empty: no offsets",
              at_least(0)},
        Field{"integers", &ParquetSpec::integers, "take integers and bools as labels and dense values"},
        Field{"missing_keys", &ParquetSpec::missing_keys, "what a missing key is"},
        Field{"fill_null_dense", &ParquetSpec::fill_null_dense,
              "in place of missing labels and dense values; none: they are errors"},
        Field{"fill_null_key", &ParquetSpec::fill_null_key, "in place of missing keys; none: see missing_keys"});
  }
};

/** Describes Parquet files: reads their footers, and list columns whose nnz_per_slot is not given. */
TERCEL_API Dataset dataset_from_parquet_files(const ParquetSpec& spec);

}  // namespace tercel::data
