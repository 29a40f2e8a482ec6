// A format of data files: what they hold, and how they are described, read and written.
//
// A new format is a class in tercel/data/formats and a line in formats.cpp; every format passes the tests in
// tests/data/formats/conformance_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/dataset_writer.h"
#include "tercel/data/schema.h"
#include "tercel/util/export.h"
#include "tercel/util/options.h"
#include "tercel/util/span.h"

namespace tercel::data {

struct Dataset;
struct DataPart;

/** Something that files say about themselves, for `tercel info`: a value, or a list of them. */
struct FileFact {
  std::string name;
  std::vector<std::string> values;
  bool is_list = false;
};

struct SourceOptions;  // record_source_impl.h
class RecordSource;    // record_source_impl.h

/**
 * A format with its options: what the files do not say themselves. The options are entries of dataset.json and flags of
 * commands. Datasets share an object once it is complete, so it does not change then.
 */
class TERCEL_API DatasetFormat {
 public:
  virtual ~DatasetFormat();

  /** "norm". */
  virtual std::string_view name() const = 0;
  virtual OptionTable option_table() const = 0;
  /** The struct of the options; it is set only before the format becomes part of a dataset. */
  virtual const void* options() const = 0;
  virtual void* options() = 0;

  /** DataError for the first file whose size is impossible for its number of rows; opens none. */
  virtual void check_sizes(const Dataset& dataset) const = 0;
  /** Bytes that so many rows take at most, without headers; INT64_MAX for more. */
  virtual int64_t estimate_bytes(const Schema& schema, int64_t rows) const = 0;
  /** Whether files are compressed, and so may be far smaller than estimate_bytes(); false by default. */
  virtual bool is_compressed() const { return false; }

  /** What the files of a part say of themselves; none by default. DataError for damaged ones. */
  virtual std::vector<FileFact> describe_part(const Dataset& dataset, const DataPart& part) const;

  /** Opens the files of a part; DataError for files that do not fit the description. */
  virtual std::unique_ptr<RecordSource> open(const Dataset& dataset, const DataPart& part,
                                             const SourceOptions& options) const = 0;
  /** Creates missing folders. ConfigError for a schema whose rows files cannot hold, or invalid options. */
  virtual std::unique_ptr<DatasetWriter> create_writer(const Schema& schema, const WriterOptions& options) const = 0;
};

/** Files of other tools: what only the user knows about them. */
class TERCEL_API FilesSpec {
 public:
  virtual ~FilesSpec();

  /** Fields that the user sets, for flags. */
  virtual OptionTable option_table() const = 0;
  virtual void* options() = 0;
  /** The field with the files of the train part, a list that command lines take without a flag; empty: there is none.
   */
  virtual std::string_view files_option() const { return {}; }
  /** Files that describe() reads, but that are not data files of the dataset. */
  virtual std::vector<std::string> further_files() const { return {}; }
  /** Opens the files, checks them against the spec and describes them; they stay where they are. */
  virtual Dataset describe() const = 0;
  /** describe(), for a folder that is replaced: ConfigError if a further file lies in it. */
  Dataset describe_for(const std::string& replaced_folder) const;
};

/** An entry of the list of formats. */
struct FormatEntry {
  std::string_view name;
  std::string_view summary;  ///< of `tercel convert NAME`, which describes files of other tools
  std::string_view example;  ///< the arguments of such a command
  std::unique_ptr<DatasetFormat> (*make)();
  std::unique_ptr<FilesSpec> (*make_spec)();
  /** What a file says of itself, if it says enough; files of the format have this ending. */
  std::vector<FileFact> (*describe_file)(const std::string& path) = nullptr;
  std::string_view extension = {};
};

/** Every format. */
TERCEL_API Span<FormatEntry> dataset_formats();

/** The entry of a format; ConfigError that starts with `owner` and has the nearest name for an unknown one. */
TERCEL_API const FormatEntry& find_format(std::string_view name, std::string_view owner);

/** IoError unless the disk of a folder has space for the files of so many rows; compressed ones are not checked. */
TERCEL_API void check_room(const DatasetFormat& format, const Schema& schema, int64_t rows, const std::string& folder);

/** A format with default options; ConfigError as that of find_format(). */
TERCEL_API std::unique_ptr<DatasetFormat> make_format(std::string_view name, std::string_view owner);

}  // namespace tercel::data
