// Every format. An explicit list: see docs/design/overview.md on why nothing registers itself.
#include <vector>

#include "tercel/data/formats/formats_impl.h"
#include "tercel/data/record_source_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/suggest.h"

namespace tercel::data {

DatasetFormat::~DatasetFormat() = default;
FilesSpec::~FilesSpec() = default;
DatasetWriter::~DatasetWriter() = default;
RecordSource::~RecordSource() = default;
Window::~Window() = default;

std::vector<FileFact> DatasetFormat::describe_part(const Dataset& /*dataset*/, const DataPart& /*part*/) const {
  return {};
}

void RecordSource::prepare(Window& /*window*/) const {}

Span<FormatEntry> dataset_formats() {
  static const FormatEntry formats[] = {norm_entry(), raw_entry(), rawasync_entry(), parquet_entry()};
  return formats;
}

Dataset FilesSpec::describe_for(const std::string& replaced_folder) const {
  for (const std::string& file : further_files()) check_outside(replaced_folder, file);
  return describe();
}

void check_room(const DatasetFormat& format, const Schema& schema, int64_t rows, const std::string& folder) {
  if (format.is_compressed()) return;
  const int64_t needed = format.estimate_bytes(schema, rows), found = free_bytes(folder);
  TERCEL_CHECK(needed <= found, IoError, printable(folder), ": expected ", format_bytes(needed),
               " of room on the disk for ", rows, " rows, found ", format_bytes(found));
}

const FormatEntry& find_format(std::string_view name, std::string_view owner) {
  std::vector<std::string_view> known;
  for (const FormatEntry& entry : dataset_formats()) {
    if (entry.name == name) return entry;
    known.push_back(entry.name);
  }
  throw_error<ConfigError>({owner, ": unknown format '", printable(name), "'", known_names(name, known)});
}

std::unique_ptr<DatasetFormat> make_format(std::string_view name, std::string_view owner) {
  return find_format(name, owner).make();
}

}  // namespace tercel::data
