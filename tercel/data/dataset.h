// A dataset: a folder with data files and a dataset.json that describes them, or a bare HugeCTR file list.
//
// docs/formats/dataset.md has the JSON. The description contains all that is needed to read the files, to know which
// keys can occur, and to convert further raw text in the same way.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/dataset_format.h"
#include "tercel/data/schema.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/options.h"

namespace tercel::data {

/** Name of the description in a dataset's folder. */
constexpr std::string_view kDatasetFile = "dataset.json";

/** A file as it was when the dataset was made. */
struct FileRecord {
  std::string path;  // relative to the dataset's folder, or absolute
  int64_t bytes = 0;
  std::string checksum;  // XXH3-64 of the content in 16 hexadecimal digits; empty: not known

  static constexpr auto fields() {
    return option_list(option_field<&FileRecord::path>("path", "relative to the folder, or absolute", required()),
                       option_field<&FileRecord::bytes>("bytes", "size", at_least(0), required()),
                       option_field<&FileRecord::checksum>("checksum", "XXH3-64 in hexadecimal digits"));
  }
  friend bool operator==(const FileRecord&, const FileRecord&) = default;
};

/** A file of rows. */
struct DataFile : FileRecord {
  int64_t rows = 0;

  static constexpr auto fields() {
    return option_list(FileRecord::fields(),
                       option_field<&DataFile::rows>("rows", "rows in the file", at_least(0), required()));
  }
  friend bool operator==(const DataFile&, const DataFile&) = default;
};

/** Metrics of the generating probabilities on the rows of a part. */
struct PlantedTruth {
  double auc = 0;
  double log_loss = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&PlantedTruth::auc>("auc", "area under the ROC curve", at_least(0), at_most(1), required()),
        option_field<&PlantedTruth::log_loss>("log_loss", "mean, natural logarithm", at_least(0), required()));
  }
  friend bool operator==(const PlantedTruth&, const PlantedTruth&) = default;
};

/** The rows of a part: files in order. */
struct DataPart {
  std::string file_list;  // HugeCTR's list of the files, relative to the dataset's folder; may be empty
  std::vector<DataFile> files;
  std::optional<PlantedTruth> truth;

  int64_t rows() const;
  int64_t bytes() const;

  static constexpr auto fields() {  // truth is read and written beside them
    return option_list(option_field<&DataPart::file_list>("file_list", "HugeCTR's list of the files"),
                       option_field<&DataPart::files>("files", "the files, in order", required()));
  }
  friend bool operator==(const DataPart&, const DataPart&) = default;
};

/** Rows to train on, to choose a model by, and to measure it with. */
enum class PartName : uint8_t { Train, Valid, Test };

constexpr auto enum_names(PartName) {
  return std::to_array<EnumName<PartName>>(
      {{PartName::Train, "train"}, {PartName::Valid, "valid"}, {PartName::Test, "test"}});
}

/** A part of a dataset, which may have no files. */
template <class Part>
struct NamedPart {
  PartName name;
  Part& part;
};

/** How dense values were made from the numbers in the source; see docs/formats/dataset.md. */
enum class DenseTransform : uint8_t { Raw, Log, Standard, Zscore };

constexpr auto enum_names(DenseTransform) {
  return std::to_array<EnumName<DenseTransform>>({{DenseTransform::Raw, "raw"},
                                                  {DenseTransform::Log, "log"},
                                                  {DenseTransform::Standard, "standard"},
                                                  {DenseTransform::Zscore, "zscore"}});
}

/** Whether the transform uses moments of the train rows. */
constexpr bool has_moments(DenseTransform transform) {
  return transform == DenseTransform::Standard || transform == DenseTransform::Zscore;
}

/** How the dataset was made, so that it can be reproduced and further raw rows can be converted alike. */
struct Conversion {
  struct Setting {
    std::string name;
    std::string value;

    static constexpr auto fields() {
      return option_list(option_field<&Setting::name>("name", "option of the tool", required()),
                         option_field<&Setting::value>("value", "its value as text"));
    }
    friend bool operator==(const Setting&, const Setting&) = default;
  };

  std::string tool;  // "generate", "criteo", "csv"
  std::string tercel_version;
  std::vector<std::string> sources;  // names of the raw files as they were given
  std::vector<Setting> settings;     // every option of the tool as text, in the tool's order
  std::optional<FileRecord> vocabulary;
  DenseTransform dense_transform = DenseTransform::Raw;
  std::vector<double> dense_mean;  // Standard (after the logarithm), Zscore: dense_dim moments of the train rows
  std::vector<double> dense_std;
  double negative_rate = 1;  // share of the train rows of label 0 that were kept

  /** Value of a setting; null if there is none of this name. */
  const std::string* setting(std::string_view name) const;

  static constexpr auto fields() {  // vocabulary is read and written beside them
    return option_list(option_field<&Conversion::tool>("tool", "what made the dataset", required()),
                       option_field<&Conversion::tercel_version>("tercel_version", "of the program that made it"),
                       option_field<&Conversion::sources>("sources", "the raw files"),
                       option_field<&Conversion::settings>("settings", "every option of the tool"),
                       option_field<&Conversion::dense_transform>("dense_transform", "how dense values were made"),
                       option_field<&Conversion::dense_mean>("dense_mean", "moments of the train rows"),
                       option_field<&Conversion::dense_std>("dense_std", "moments of the train rows", above(0)),
                       option_field<&Conversion::negative_rate>(
                           "negative_rate", "share of the train rows of label 0 that were kept", above(0), at_most(1)));
  }
  friend bool operator==(const Conversion&, const Conversion&) = default;
};

/** The description of a dataset. */
struct Dataset {
  std::string folder;  // its folder; not in the JSON; paths below are relative to it
  /** Copies of a description share it; not null. */
  std::shared_ptr<const DatasetFormat> format;
  /** Formats that the rows were converted from, with their options then; each occurs once. */
  std::vector<std::shared_ptr<const DatasetFormat>> origins;
  Schema schema;
  DataPart train;
  DataPart valid;  // no files: there is no such part
  DataPart test;
  std::optional<Conversion> conversion;

  /** The format; ConfigError if there is none. */
  TERCEL_API const DatasetFormat& checked_format() const;
  const DataPart& part(PartName name) const { return parts()[static_cast<size_t>(name)].part; }
  DataPart& part(PartName name) { return parts()[static_cast<size_t>(name)].part; }
  /** Every part, in the order of their names. */
  std::array<NamedPart<const DataPart>, 3> parts() const {
    return {{{PartName::Train, train}, {PartName::Valid, valid}, {PartName::Test, test}}};
  }
  std::array<NamedPart<DataPart>, 3> parts() {
    return {{{PartName::Train, train}, {PartName::Valid, valid}, {PartName::Test, test}}};
  }
  /** Rows of all parts. */
  int64_t rows() const;
  /** The path of a file of the dataset. */
  std::string path_of(const FileRecord& file) const;
  /** For messages: its folder; what it is where it has none, as a table in memory. */
  std::string name() const;
};

/** A format of this name with the options that the dataset, or what it was converted from, has; else with defaults. */
TERCEL_API std::unique_ptr<DatasetFormat> make_format_like(const Dataset& dataset, std::string_view name,
                                                           std::string_view owner);

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

/**
 * Makes a dataset of files that are not moved: a new folder that contains only the description, with absolute paths.
 * With `replace` it may replace a dataset. Returns the description.
 */
TERCEL_API Dataset describe_files(Dataset dataset, const std::string& folder, bool replace);

}  // namespace tercel::data
