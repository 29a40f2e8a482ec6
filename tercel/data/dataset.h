// A dataset: a folder with data files and a dataset.json that describes them, or a bare HugeCTR file list.
//
// docs/formats/dataset.md has the JSON. The description contains all that is needed to read the files, to know which
// keys can occur, and to convert further raw text in the same way.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tercel/data/norm_format.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/options.h"

namespace tercel::data {

enum class DataFormat : uint8_t { Norm };

constexpr auto enum_names(DataFormat) { return std::to_array<EnumName<DataFormat>>({{DataFormat::Norm, "norm"}}); }

/** Name of the description in a dataset's folder. */
constexpr std::string_view kDatasetFile = "dataset.json";

/** One categorical field. */
struct Slot {
  std::string name;
  int64_t size = 0;       // its keys lie in [first_key, first_key + size); 0: any key may occur
  int64_t first_key = 0;  // 0 where size is 0
  int64_t hotness = 1;    // most keys that a row has in this slot (HugeCTR's nnz_per_slot)

  static constexpr auto fields() {
    return std::tuple(Field{"name", &Slot::name, "name of the field", required()},
                      Field{"size", &Slot::size, "number of its keys, 0 if any key may occur", at_least(0)},
                      Field{"first_key", &Slot::first_key, "its smallest key", at_least(0)},
                      Field{"hotness", &Slot::hotness, "most keys that a row has in it", at_least(1)});
  }
  friend bool operator==(const Slot&, const Slot&) = default;
};

/** Content of a row, independent of the file format. */
struct Schema {
  int64_t label_dim = 1;
  int64_t dense_dim = 0;
  std::vector<std::string> label_names;  // label_dim of them, or none
  std::vector<std::string> dense_names;  // dense_dim of them, or none
  std::vector<Slot> slots;

  int64_t slot_num() const { return static_cast<int64_t>(slots.size()); }
  /** Sum of the slots' hotness: most keys of a row. */
  int64_t max_nnz() const;
  /** Rows that one table for all slots needs: the end of the last key range; 0 if a slot's size is unknown. */
  int64_t num_keys() const;
  /** HugeCTR's slot_size_array; a 0 where a slot's size is unknown. */
  std::vector<int64_t> slot_size_array() const;
  /** Sets first_key of each slot to the sum of the sizes before it. */
  void set_consecutive_keys();
  /** ConfigError "<name>: ..." unless dims, names, ranges and hotness make sense. */
  void check(std::string_view name) const;

  static constexpr auto fields() {
    return std::tuple(
        Field{"label_dim", &Schema::label_dim, "labels of a row", at_least(1), at_most(kMaxDim), required()},
        Field{"label_names", &Schema::label_names, "their names"},
        Field{"dense_dim", &Schema::dense_dim, "dense values of a row", at_least(0), at_most(kMaxDim), required()},
        Field{"dense_names", &Schema::dense_names, "their names"},
        Field{"slots", &Schema::slots, "the categorical fields, in the order of the files"});
  }
  friend bool operator==(const Schema&, const Schema&) = default;
};

/** A file as it was when the dataset was made. */
struct FileRecord {
  std::string path;  // relative to the dataset's folder, or absolute
  int64_t bytes = 0;
  std::string checksum;  // XXH3-64 of the content in 16 hexadecimal digits; empty: not known

  static constexpr auto fields() {
    return std::tuple(Field{"path", &FileRecord::path, "relative to the folder, or absolute", required()},
                      Field{"bytes", &FileRecord::bytes, "size", at_least(0), required()},
                      Field{"checksum", &FileRecord::checksum, "XXH3-64 in hexadecimal digits"});
  }
  friend bool operator==(const FileRecord&, const FileRecord&) = default;
};

/** A file of rows. */
struct DataFile : FileRecord {
  int64_t rows = 0;

  static constexpr auto fields() {
    return std::tuple_cat(FileRecord::fields(),
                          std::tuple(Field{"rows", &DataFile::rows, "rows in the file", at_least(0), required()}));
  }
  friend bool operator==(const DataFile&, const DataFile&) = default;
};

/** Metrics of the generating probabilities on the rows of a part. */
struct PlantedTruth {
  double auc = 0;
  double log_loss = 0;

  static constexpr auto fields() {
    return std::tuple(Field{"auc", &PlantedTruth::auc, "area under the ROC curve", at_least(0), at_most(1), required()},
                      Field{"log_loss", &PlantedTruth::log_loss, "mean, natural logarithm", at_least(0), required()});
  }
  friend bool operator==(const PlantedTruth&, const PlantedTruth&) = default;
};

/** Train or test rows: files in order. */
struct DataPart {
  std::string file_list;  // HugeCTR's list of the files, relative to the dataset's folder; may be empty
  std::vector<DataFile> files;
  std::optional<PlantedTruth> truth;

  int64_t rows() const;
  int64_t bytes() const;

  static constexpr auto fields() {  // truth is read and written beside them
    return std::tuple(Field{"file_list", &DataPart::file_list, "HugeCTR's list of the files"},
                      Field{"files", &DataPart::files, "the files, in order", required()});
  }
  friend bool operator==(const DataPart&, const DataPart&) = default;
};

enum class PartName : uint8_t { Train, Test };

constexpr auto enum_names(PartName) {
  return std::to_array<EnumName<PartName>>({{PartName::Train, "train"}, {PartName::Test, "test"}});
}

/** How dense values were made from the numbers in the source; see docs/formats/dataset.md. */
enum class DenseTransform : uint8_t { Raw, Log, Standard };

constexpr auto enum_names(DenseTransform) {
  return std::to_array<EnumName<DenseTransform>>(
      {{DenseTransform::Raw, "raw"}, {DenseTransform::Log, "log"}, {DenseTransform::Standard, "standard"}});
}

/** How the dataset was made, so that it can be reproduced and further raw rows can be converted alike. */
struct Conversion {
  struct Setting {
    std::string name;
    std::string value;

    static constexpr auto fields() {
      return std::tuple(Field{"name", &Setting::name, "option of the tool", required()},
                        Field{"value", &Setting::value, "its value as text"});
    }
    friend bool operator==(const Setting&, const Setting&) = default;
  };

  std::string tool;  // "generate", "criteo", "csv"
  std::string tercel_version;
  std::vector<std::string> sources;  // names of the raw files as they were given
  std::vector<Setting> settings;     // every option of the tool as text, in the tool's order
  std::optional<FileRecord> vocabulary;
  DenseTransform dense_transform = DenseTransform::Raw;
  std::vector<double> dense_mean;  // Standard: dense_dim moments of the train rows after the logarithm; else none
  std::vector<double> dense_std;

  /** Value of a setting; null if there is none of this name. */
  const std::string* setting(std::string_view name) const;

  static constexpr auto fields() {  // vocabulary is read and written beside them
    return std::tuple(Field{"tool", &Conversion::tool, "what made the dataset", required()},
                      Field{"tercel_version", &Conversion::tercel_version, "of the program that made it"},
                      Field{"sources", &Conversion::sources, "the raw files"},
                      Field{"settings", &Conversion::settings, "every option of the tool"},
                      Field{"dense_transform", &Conversion::dense_transform, "how dense values were made"},
                      Field{"dense_mean", &Conversion::dense_mean, "moments of the train rows"},
                      Field{"dense_std", &Conversion::dense_std, "moments of the train rows", above(0)});
  }
  friend bool operator==(const Conversion&, const Conversion&) = default;
};

/** The description of a dataset. */
struct Dataset {
  std::string folder;  // its folder; not in the JSON; paths below are relative to it
  DataFormat format = DataFormat::Norm;
  KeyType key_type = KeyType::I64;
  CheckMode check_mode = CheckMode::Sum;
  Schema schema;
  DataPart train;
  DataPart test;  // no files: there is no test part
  std::optional<Conversion> conversion;

  const DataPart& part(PartName name) const { return name == PartName::Train ? train : test; }
  /** The path of a file of the dataset. */
  std::string path_of(const FileRecord& file) const;
};

/** dataset.json's text, indented, with a newline at the end. ConfigError if the description makes no sense. */
TERCEL_API std::string dataset_to_json(const Dataset& dataset);

/** Reverse of dataset_to_json(); DataError that starts with `name` and names the missing, invalid or unknown entry.
 */
TERCEL_API Dataset dataset_from_json(std::string_view text, const std::string& name);

/** Writes dataset.json into the folder, atomically: the last step of making a dataset. */
TERCEL_API void save_dataset(const Dataset& dataset, const std::string& folder);

/**
 * Reads the description of a dataset, given as its folder or its dataset.json. DataError if it is damaged or if a data
 * file or the vocabulary is missing or has another size than recorded; contents are not read.
 */
TERCEL_API Dataset load_dataset(const std::string& path);

/** DataError unless the file's content has the recorded size and checksum. */
TERCEL_API void verify_file(const Dataset& dataset, const FileRecord& file);

/** Properties of files from HugeCTR's tools that only the user knows. */
struct NormSpec {
  std::string train_list;  // HugeCTR file lists
  std::string test_list;   // may be empty
  int64_t label_dim = 1;
  int64_t dense_dim = 0;
  std::vector<int64_t> nnz_per_slot;     // one for each slot: the most keys that a row has in it
  std::vector<int64_t> slot_size_array;  // empty: any key may occur; else keys of a slot follow those of the one before
  KeyType key_type = KeyType::U32;
  CheckMode check_mode = CheckMode::Sum;

  static constexpr auto fields() {
    return std::tuple(Field{"train_list", &NormSpec::train_list, "HugeCTR file list of the train part", required()},
                      Field{"test_list", &NormSpec::test_list, "HugeCTR file list of the test part, may be empty"},
                      Field{"label_dim", &NormSpec::label_dim, "labels of a row", at_least(1)},
                      Field{"dense_dim", &NormSpec::dense_dim, "dense values of a row", at_least(0)},
                      Field{"nnz_per_slot", &NormSpec::nnz_per_slot,
                            "for each slot, the most keys that a row has in it", at_least(1)},
                      Field{"slot_size_array", &NormSpec::slot_size_array,
                            "keys of each slot; empty: any key may occur", at_least(1)},
                      Field{"key_type", &NormSpec::key_type, "width of the keys in the files"},
                      Field{"check_mode", &NormSpec::check_mode, "framing of the records"});
  }
};

/** Describes bare Norm files: opens each, checks its header against the spec, and reads its number of rows. */
TERCEL_API Dataset dataset_from_norm_files(const NormSpec& spec);

/**
 * Makes a dataset of bare Norm files, which are not moved: a new folder that contains only the description. With
 * `replace` it may replace a dataset.
 */
TERCEL_API Dataset describe_norm_files(const NormSpec& spec, const std::string& folder, bool replace);

}  // namespace tercel::data
