#include "tercel/data/dataset.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tercel/data/random_access_file.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/version.h"

namespace tercel::data {

namespace {

constexpr int64_t kJsonVersion = 3;
constexpr int64_t kOldestJsonVersion = 2;  // slots without weights, no columns

/** Entries of dataset.json besides those that are objects. */
struct Head {
  int64_t version = kJsonVersion;

  static constexpr auto fields() {
    return option_list(option_field<&Head::version>("version", "of this description", required()));
  }
};

constexpr std::string_view kFormat = "format";
constexpr std::string_view kFormatName = "name";
constexpr std::string_view kOrigins = "origins";
constexpr std::string_view kSchema = "schema";
constexpr std::string_view kConversion = "conversion";
constexpr std::string_view kTruth = "truth";
constexpr std::string_view kVocabulary = "vocabulary";

void check_moments(std::string_view owner, const Dataset& dataset) {
  if (!dataset.conversion) return;
  const Conversion& conversion = *dataset.conversion;
  const size_t wanted = has_moments(conversion.dense_transform) ? static_cast<size_t>(dataset.schema.dense_dim) : 0;
  TERCEL_CHECK(conversion.dense_mean.size() == wanted && conversion.dense_std.size() == wanted, ConfigError, owner,
               ": conversion: expected ", wanted, " values of dense_mean and dense_std for dense_transform ",
               to_string(conversion.dense_transform), ", found ", conversion.dense_mean.size(), " and ",
               conversion.dense_std.size());
}

void check_dataset(const Dataset& dataset, std::string_view owner) {
  dataset.schema.check(owner);
  TERCEL_CHECK(!dataset.train.files.empty(), ConfigError, owner, ": train: expected at least one file, found none");
  check_moments(owner, dataset);
  if (!dataset.conversion || !dataset.conversion->vocabulary) return;
  // Runs copy the vocabulary: a description from elsewhere must not make them copy any file of the machine.
  const std::string& path = dataset.conversion->vocabulary->path;
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  TERCEL_CHECK(!normal.empty() && normal.is_relative() && *normal.begin() != "..", ConfigError, owner,
               ": conversion: vocabulary: expected a file in the dataset's folder, found ", printable(path));
}

Json part_to_json(const DataPart& part) {
  Json json = write_options(part);
  if (part.truth) json[std::string(kTruth)] = write_options(*part.truth);
  return json;
}

DataPart part_from_json(const Json& json, const std::string& owner) {
  DataPart part;
  read_options(json, part, owner, {kTruth});
  if (json.contains(kTruth)) {
    part.truth.emplace();
    read_options(json[std::string(kTruth)], *part.truth, owner + ": truth");
  }
  return part;
}

Json conversion_to_json(const Conversion& conversion) {
  Json json = write_options(conversion);
  if (conversion.vocabulary) json[std::string(kVocabulary)] = write_options(*conversion.vocabulary);
  return json;
}

Conversion conversion_from_json(const Json& json, const std::string& owner) {
  Conversion conversion;
  read_options(json, conversion, owner, {kVocabulary});
  if (json.contains(kVocabulary)) {
    conversion.vocabulary.emplace();
    read_options(json[std::string(kVocabulary)], *conversion.vocabulary, owner + ": vocabulary");
  }
  return conversion;
}

Json format_to_json(const DatasetFormat& format) {
  Json json{{kFormatName, format.name()}};
  json.update(detail::write_options(format.option_table(), format.options()));
  return json;
}

std::unique_ptr<DatasetFormat> format_from_json(const Json& json, const std::string& owner) {
  const bool named = json.is_object() && json.contains(kFormatName) && json[kFormatName].is_string();
  TERCEL_CHECK(named, DataError, "[", printable(owner), "] expected an object with the name of a format, found ",
               printable(dump_json_line(json)));
  std::unique_ptr<DatasetFormat> format = make_format(json[kFormatName].get<std::string>(), printable(owner));
  detail::read_options(json, format->option_table(), format->options(), owner, {kFormatName});
  // Descriptions have every option: a default in place of a lost one would read other rows.
  for (const OptionField& field : format->option_table())
    TERCEL_CHECK(json.contains(field.name), DataError, "[", printable(owner), "] option '", field.name, "': expected ",
                 option_type_text(field), ", found nothing");
  return format;
}

std::vector<std::shared_ptr<const DatasetFormat>> origins_from_json(const Json& json, const std::string& owner) {
  TERCEL_CHECK(json.is_array(), DataError, "[", printable(owner), "] expected a list of formats, found ",
               printable(dump_json_line(json)));
  std::vector<std::shared_ptr<const DatasetFormat>> origins;
  for (const Json& entry : json) {
    std::shared_ptr<const DatasetFormat> origin = format_from_json(entry, owner);
    for (const auto& other : origins)
      TERCEL_CHECK(other->name() != origin->name(), DataError, "[", printable(owner), "] the format '", origin->name(),
                   "' occurs twice");
    origins.push_back(std::move(origin));
  }
  return origins;
}

/** Before any other entry is read: those of another version may be unknown. */
void check_version(const Json& json, const std::string& name) {
  const auto entry = [](const Json& object, std::string_view key) {
    return object.is_object() && object.contains(key) ? object.at(std::string(key)) : Json();
  };
  const Json found = entry(json, "version"), made_by = entry(entry(json, kConversion), "tercel_version");
  if (!found.is_number_integer() || (found >= kOldestJsonVersion && found <= kJsonVersion)) return;
  throw_error<DataError>({printable(name), ": expected version ", kOldestJsonVersion, " or ", kJsonVersion,
                          " of the description, which Tercel ", version(), " reads, found ", dump_json_line(found),
                          " of Tercel ", made_by.is_string() ? printable(made_by.get<std::string>()) : "unknown"});
}

Dataset parse_dataset(std::string_view text, const std::string& name) {
  const Json json = parse_json(text, name, JsonErrors::Data);
  check_version(json, name);
  Head head;
  Dataset dataset;
  std::vector<std::string_view> objects = {kFormat, kOrigins, kSchema, kConversion};
  for (const auto& [part_name, part] : dataset.parts()) objects.push_back(to_string(part_name));
  read_options(json, head, name, objects);
  for (const std::string_view key : {kFormat, kSchema, to_string(PartName::Train)})
    TERCEL_CHECK(json.contains(key), DataError, "[", printable(name), "] option '", key,
                 "': expected an object, found nothing");
  dataset.format = format_from_json(json[std::string(kFormat)], name + ": format");
  if (json.contains(kOrigins)) dataset.origins = origins_from_json(json[std::string(kOrigins)], name + ": origins");
  read_options(json[std::string(kSchema)], dataset.schema, name + ": schema");
  for (const auto& [part_name, part] : dataset.parts()) {
    const std::string key(to_string(part_name));
    if (json.contains(key)) part = part_from_json(json[key], str_cat({name, ": ", key}));
  }
  if (json.contains(kConversion))
    dataset.conversion = conversion_from_json(json[std::string(kConversion)], name + ": conversion");
  check_dataset(dataset, printable(name));
  return dataset;
}

void check_size(const Dataset& dataset, const FileRecord& file) {
  const std::string path = dataset.path_of(file);
  const std::optional<FileInfo> info = data_path_info(path);
  TERCEL_CHECK(info, DataError, printable(path), ": expected a file of ", file.bytes, " bytes, as ", kDatasetFile,
               " says, found nothing");
  TERCEL_CHECK(info->kind == FileKind::Regular, DataError, printable(path),
               ": expected a regular file, found a folder or special file");
  TERCEL_CHECK(info->size == file.bytes, DataError, printable(path), ": expected ", file.bytes, " bytes, as ",
               kDatasetFile, " says, found ", info->size);
}

/** As check_dataset(), for links. The folder itself may be reached through one. */
void check_in_folder(const Dataset& dataset, const FileRecord& file) {
  const std::string path = dataset.path_of(file);
  if (is_url(path)) return;  // stores have no links
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error),
                              inside = std::filesystem::relative(
                                  real,
                                  std::filesystem::canonical(dataset.folder.empty() ? "." : dataset.folder, error),
                                  error);
  TERCEL_CHECK(!error && !inside.empty() && *inside.begin() != "..", DataError, printable(path),
               ": expected a file in the dataset's folder, found a link to ", printable(real.string()));
}

}  // namespace

int64_t DataPart::rows() const {
  int64_t sum = 0;
  for (const DataFile& file : files) sum += file.rows;
  return sum;
}

int64_t DataPart::bytes() const {
  int64_t sum = 0;
  for (const DataFile& file : files) sum += file.bytes;
  return sum;
}

int64_t Dataset::rows() const {
  int64_t sum = 0;
  for (const auto& [name, part] : parts()) sum += part.rows();
  return sum;
}

const std::string* Conversion::setting(std::string_view name) const {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [name](const Setting& setting) { return setting.name == name; });
  return found == settings.end() ? nullptr : &found->value;
}

const DatasetFormat& Dataset::checked_format() const {
  TERCEL_CHECK(format, ConfigError, "dataset: expected a format, such as norm_format(), found none");
  return *format;
}

std::string Dataset::name() const { return folder.empty() ? "dataset" : folder; }

std::string Dataset::path_of(const FileRecord& file) const {
  return folder.empty() ? file.path : join_path(folder, file.path);
}

std::unique_ptr<DatasetFormat> make_format_like(const Dataset& dataset, std::string_view name, std::string_view owner) {
  std::unique_ptr<DatasetFormat> format = make_format(name, owner);
  const auto copy = [&](const DatasetFormat& from) {
    if (from.name() != name) return;
    detail::read_options(format_to_json(from), format->option_table(), format->options(), std::string(owner),
                         {kFormatName});
  };
  for (const auto& origin : dataset.origins) copy(*origin);
  copy(dataset.checked_format());
  return format;
}

std::string dataset_to_json(const Dataset& dataset) {
  check_dataset(dataset, kDatasetFile);
  Json json = write_options(Head{});
  json[std::string(kFormat)] = format_to_json(dataset.checked_format());
  for (const auto& origin : dataset.origins) json[std::string(kOrigins)].push_back(format_to_json(*origin));
  json[std::string(kSchema)] = write_options(dataset.schema);
  for (const auto& [name, part] : dataset.parts())
    if (!part.files.empty()) json[std::string(to_string(name))] = part_to_json(part);
  if (dataset.conversion) json[std::string(kConversion)] = conversion_to_json(*dataset.conversion);
  return dump_json(json);
}

Dataset dataset_from_json(std::string_view text, const std::string& name) {
  try {
    return parse_dataset(text, name);
  } catch (const ConfigError& error) {
    // The file is not written by hand: errors in it are damage.
    throw DataError(error.what());
  }
}

void save_dataset(const Dataset& dataset, const std::string& folder) {
  write_file_atomically(join_path(folder, kDatasetFile), dataset_to_json(dataset));
}

Dataset load_dataset(const std::string& path) {
  // Web servers have no folders, and a request less is made of a store.
  const bool is_folder = is_url(path) ? !path.ends_with(".json") : exists(path) && is_directory(path);
  TERCEL_CHECK(is_url(path) || exists(path), IoError, printable(path), ": expected a dataset's folder, found nothing");
  const bool is_description = is_folder || path.ends_with(".json");
  if (const FormatEntry* const format = is_description ? nullptr : format_of_file(path))
    throw_error<DataError>({printable(path), ": expected a dataset's folder, found a file of the format ", format->name,
                            "; 'tercel convert ", format->name, "' makes a dataset of such files"});
  TERCEL_CHECK(is_description, DataError, printable(path),
               ": expected a dataset's folder, found a file; tercel convert makes a dataset from text");
  const std::string description = is_folder ? join_path(path, kDatasetFile) : path;
  TERCEL_CHECK(data_path_info(description), DataError, printable(path), ": expected a folder with ", kDatasetFile,
               ", found none in it");
  Dataset dataset = dataset_from_json(read_data_file(description, JsonLimits{}.max_bytes), description);
  dataset.folder = is_folder ? path : parent_path(path);
  for (const auto& [name, part] : dataset.parts())
    for (const DataFile& file : part.files) check_size(dataset, file);
  dataset.checked_format().check_sizes(dataset);
  if (dataset.conversion && dataset.conversion->vocabulary) {
    check_size(dataset, *dataset.conversion->vocabulary);
    check_in_folder(dataset, *dataset.conversion->vocabulary);
  }
  return dataset;
}

void verify_file(const Dataset& dataset, const FileRecord& file) {
  check_size(dataset, file);
  if (file.checksum.empty()) return;
  const std::string path = dataset.path_of(file);
  const std::string found = checksum_to_hex(data_file_checksum(path));
  TERCEL_CHECK(found == file.checksum, DataError, printable(path), ": expected the XXH3 checksum ", file.checksum,
               ", found ", found, ": the content has changed");
}

Dataset describe_files(Dataset dataset, const std::string& folder, bool replace) {
  const auto locate = [&](std::string& path) {
    TERCEL_CHECK(is_utf8(path), ConfigError, printable(path), ": expected a path in UTF-8, as descriptions require");
    if (replace) check_outside(folder, path);
    if (!is_url(path)) path = std::filesystem::canonical(path).string();
  };
  for (const auto& [name, part] : dataset.parts()) {
    if (!part.file_list.empty()) locate(part.file_list);
    for (DataFile& file : part.files) locate(file.path);
  }
  AtomicDir target(folder, replace ? kDatasetFile : std::string_view());
  save_dataset(dataset, target.temporary_path());
  target.commit();
  dataset.folder = folder;
  return dataset;
}

}  // namespace tercel::data
