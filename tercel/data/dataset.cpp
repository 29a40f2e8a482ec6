#include "tercel/data/dataset.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "tercel/data/file_list.h"
#include "tercel/data/norm_layout_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/version.h"

namespace tercel::data {

namespace {

constexpr int64_t kJsonVersion = 1;

/** Entries of dataset.json beside the schema and the parts. */
struct Head {
  DataFormat format = DataFormat::Norm;
  int64_t version = kJsonVersion;
  KeyType key_type = KeyType::I64;
  CheckMode check_mode = CheckMode::Sum;

  static constexpr auto fields() {
    return std::tuple(Field{"format", &Head::format, "format of the data files", required()},
                      Field{"version", &Head::version, "of this description", required()},
                      Field{"key_type", &Head::key_type, "width of the keys in the files", required()},
                      Field{"check_mode", &Head::check_mode, "framing of the records", required()});
  }
};

constexpr std::string_view kSchema = "schema";
constexpr std::string_view kTrain = "train";
constexpr std::string_view kTest = "test";
constexpr std::string_view kConversion = "conversion";
constexpr std::string_view kTruth = "truth";
constexpr std::string_view kVocabulary = "vocabulary";

void check_names(std::string_view owner, std::string_view what, const std::vector<std::string>& names, int64_t dim) {
  TERCEL_CHECK(names.empty() || static_cast<int64_t>(names.size()) == dim, ConfigError, owner, ": ", what,
               ": expected no names or ", dim, ", found ", names.size());
  std::vector<std::string_view> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  TERCEL_CHECK(twice == sorted.end(), ConfigError, owner, ": ", what, ": the name '", printable(*twice),
               "' occurs twice");
}

void check_moments(std::string_view owner, const Dataset& dataset) {
  if (!dataset.conversion) return;
  const Conversion& conversion = *dataset.conversion;
  const size_t wanted =
      conversion.dense_transform == DenseTransform::Standard ? static_cast<size_t>(dataset.schema.dense_dim) : 0;
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

/** Before any other entry is read: those of another version may be unknown. */
void check_version(const Json& json, const std::string& name) {
  const auto entry = [](const Json& object, std::string_view key) {
    return object.is_object() && object.contains(key) ? object.at(std::string(key)) : Json();
  };
  const Json found = entry(json, "version"), made_by = entry(entry(json, kConversion), "tercel_version");
  if (!found.is_number_integer() || found == kJsonVersion) return;
  throw_error<DataError>({printable(name), ": expected version ", kJsonVersion, " of the description, which Tercel ",
                          version(), " reads, found ", dump_json_line(found), " of Tercel ",
                          made_by.is_string() ? printable(made_by.get<std::string>()) : "unknown"});
}

Dataset parse_dataset(std::string_view text, const std::string& name) {
  const Json json = parse_json(text, name, JsonErrors::Data);
  check_version(json, name);
  Head head;
  read_options(json, head, name, {kSchema, kTrain, kTest, kConversion});
  for (const std::string_view key : {kSchema, kTrain})
    TERCEL_CHECK(json.contains(key), DataError, "[", printable(name), "] option '", key,
                 "': expected an object, found nothing");
  Dataset dataset;
  dataset.format = head.format;
  dataset.key_type = head.key_type;
  dataset.check_mode = head.check_mode;
  read_options(json[std::string(kSchema)], dataset.schema, name + ": schema");
  dataset.train = part_from_json(json[std::string(kTrain)], name + ": train");
  if (json.contains(kTest)) dataset.test = part_from_json(json[std::string(kTest)], name + ": test");
  if (json.contains(kConversion))
    dataset.conversion = conversion_from_json(json[std::string(kConversion)], name + ": conversion");
  check_dataset(dataset, printable(name));
  return dataset;
}

void check_size(const Dataset& dataset, const FileRecord& file) {
  const std::string path = dataset.path_of(file);
  TERCEL_CHECK(exists(path), DataError, printable(path), ": expected a file of ", file.bytes, " bytes, as ",
               kDatasetFile, " says, found nothing");
  const FileInfo info = file_info(path);
  TERCEL_CHECK(info.kind == FileKind::Regular, DataError, printable(path),
               ": expected a regular file, found a folder or special file");
  TERCEL_CHECK(info.size == file.bytes, DataError, printable(path), ": expected ", file.bytes, " bytes, as ",
               kDatasetFile, " says, found ", info.size);
}

/** As check_dataset(), for links. The folder itself may be reached through one. */
void check_in_folder(const Dataset& dataset, const FileRecord& file) {
  const std::string path = dataset.path_of(file);
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error),
                              inside = std::filesystem::relative(
                                  real,
                                  std::filesystem::canonical(dataset.folder.empty() ? "." : dataset.folder, error),
                                  error);
  TERCEL_CHECK(!error && !inside.empty() && *inside.begin() != "..", DataError, printable(path),
               ": expected a file in the dataset's folder, found a link to ", printable(real.string()));
}

DataPart part_from_norm_list(const std::string& list, const NormLayout& layout) {
  DataPart part;
  part.file_list = list;
  for (const std::string& path : read_file_list(list)) {
    const File file = File::open_read(path);
    DataFile record;
    record.path = path;
    record.bytes = file.size();
    record.rows = read_norm_header(file, layout);
    check_norm_size(path, record.bytes, record.rows, layout);
    part.files.push_back(std::move(record));
  }
  return part;
}

}  // namespace

int64_t Schema::max_nnz() const {
  int64_t sum = 0;
  for (const Slot& slot : slots) sum += slot.hotness;
  return sum;
}

int64_t Schema::num_keys() const {
  int64_t end = 0;
  for (const Slot& slot : slots) {
    if (slot.size == 0) return 0;
    end = std::max(end, slot.first_key + slot.size);
  }
  return end;
}

std::vector<int64_t> Schema::slot_size_array() const {
  std::vector<int64_t> sizes;
  for (const Slot& slot : slots) sizes.push_back(slot.size);
  return sizes;
}

void Schema::set_consecutive_keys() {
  int64_t next = 0;
  for (Slot& slot : slots) {
    TERCEL_CHECK(slot.size >= 0 && slot.size <= std::numeric_limits<int64_t>::max() - next, ConfigError, "slot '",
                 printable(slot.name), "': ", slot.size, " keys behind ", next, " do not fit in 64 bits");
    slot.first_key = slot.size > 0 ? next : 0;
    next += slot.size;
  }
}

void Schema::check(std::string_view name) const {
  check_options(*this, name);
  TERCEL_CHECK(slot_num() <= kMaxDim, ConfigError, name, ": slots: expected at most ", kMaxDim, ", found ", slot_num());
  check_names(name, "label_names", label_names, label_dim);
  check_names(name, "dense_names", dense_names, dense_dim);
  std::vector<std::string> names;
  for (const Slot& slot : slots) {
    names.push_back(slot.name);
    TERCEL_CHECK(slot.hotness <= kMaxHotness, ConfigError, name, ": slot '", printable(slot.name),
                 "': hotness: expected at most ", kMaxHotness, ", found ", slot.hotness);
    TERCEL_CHECK(slot.size > 0 || slot.first_key == 0, ConfigError, name, ": slot '", printable(slot.name),
                 "': expected first_key 0 where size is 0, found ", slot.first_key);
    TERCEL_CHECK(slot.first_key <= std::numeric_limits<int64_t>::max() - slot.size, ConfigError, name, ": slot '",
                 printable(slot.name), "': ", slot.size, " keys from ", slot.first_key, " on do not fit in 64 bits");
  }
  check_names(name, "slots", names, slot_num());
}

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

const std::string* Conversion::setting(std::string_view name) const {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [name](const Setting& setting) { return setting.name == name; });
  return found == settings.end() ? nullptr : &found->value;
}

std::string Dataset::path_of(const FileRecord& file) const {
  return folder.empty() ? file.path : join_path(folder, file.path);
}

std::string dataset_to_json(const Dataset& dataset) {
  check_dataset(dataset, kDatasetFile);
  Head head;
  head.format = dataset.format;
  head.key_type = dataset.key_type;
  head.check_mode = dataset.check_mode;
  Json json = write_options(head);
  json[std::string(kSchema)] = write_options(dataset.schema);
  json[std::string(kTrain)] = part_to_json(dataset.train);
  if (!dataset.test.files.empty()) json[std::string(kTest)] = part_to_json(dataset.test);
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
  TERCEL_CHECK(exists(path), IoError, printable(path), ": expected a dataset's folder, found nothing");
  const bool is_folder = is_directory(path);
  TERCEL_CHECK(is_folder || path.ends_with(".json"), DataError, printable(path),
               ": expected a dataset's folder, found a file; tercel convert makes a dataset from text");
  const std::string description = is_folder ? join_path(path, kDatasetFile) : path;
  TERCEL_CHECK(exists(description), DataError, printable(path), ": expected a folder with ", kDatasetFile,
               ", found none in it");
  Dataset dataset = dataset_from_json(read_file(description, JsonLimits{}.max_bytes), description);
  dataset.folder = is_folder ? path : parent_path(path);
  const NormLayout layout(dataset.schema, dataset.key_type, dataset.check_mode, false);
  for (const DataPart* part : {&dataset.train, &dataset.test}) {
    for (const DataFile& file : part->files) {
      check_size(dataset, file);
      check_norm_size(dataset.path_of(file), file.bytes, file.rows, layout);
    }
  }
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
  const std::string found = checksum_to_hex(file_checksum(path));
  TERCEL_CHECK(found == file.checksum, DataError, printable(path), ": expected the XXH3 checksum ", file.checksum,
               ", found ", found, ": the content has changed");
}

Dataset dataset_from_norm_files(const NormSpec& spec) {
  constexpr std::string_view kOwner = "norm";
  check_options(spec, kOwner);
  Dataset dataset;
  dataset.key_type = spec.key_type;
  dataset.check_mode = spec.check_mode;
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
    slot.size = spec.slot_size_array.empty() ? 0 : spec.slot_size_array[s];
    slot.hotness = spec.nnz_per_slot[s];
    schema.slots.push_back(std::move(slot));
  }
  schema.set_consecutive_keys();
  schema.check(kOwner);
  const NormLayout layout(schema, spec.key_type, spec.check_mode, false);
  dataset.train = part_from_norm_list(spec.train_list, layout);
  if (!spec.test_list.empty()) dataset.test = part_from_norm_list(spec.test_list, layout);
  return dataset;
}

Dataset describe_norm_files(const NormSpec& spec, const std::string& folder, bool replace) {
  Dataset dataset = dataset_from_norm_files(spec);
  const auto locate = [&](std::string& path) {
    TERCEL_CHECK(is_utf8(path), ConfigError, printable(path), ": expected a path in UTF-8, as descriptions require");
    if (replace) check_outside(folder, path);
    path = std::filesystem::canonical(path).string();
  };
  for (DataPart* part : {&dataset.train, &dataset.test}) {
    if (!part->file_list.empty()) locate(part->file_list);
    for (DataFile& file : part->files) locate(file.path);
  }
  AtomicDir target(folder, replace ? kDatasetFile : std::string_view());
  save_dataset(dataset, target.temporary_path());
  target.commit();
  dataset.folder = folder;
  return dataset;
}

}  // namespace tercel::data
