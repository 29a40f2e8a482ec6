#include "tercel/recsys/run_folder_impl.h"

#include <algorithm>

#include "tercel/data/random_access_file.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::recsys {

namespace {

constexpr int64_t kMaxDescriptionBytes = int64_t{64} << 20;
constexpr int64_t kMaxMetricsBytes = int64_t{1} << 30;
constexpr std::string_view kVocabularyFile = "vocabulary";

/** Creates a folder if it is missing; returns whether it existed. */
bool existed_before(const std::string& path) {
  const bool existed = exists(path);
  create_dirs(path);
  return existed;
}

bool holds_only(const std::string& folder, const std::string& lock) {
  const std::vector<std::string> names = list_dir(folder);
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name == lock || name == lock + ".held"; });
}

}  // namespace

LockedFolder::LockedFolder(const RunFolder& folder)
    : path_(folder.path()),
      existed_(existed_before(path_)),
      lock_(folder.lock()),
      new_(holds_only(path_, file_name(folder.lock()))) {}

LockedFolder::~LockedFolder() {
  if (!kept_) remove();
}

void LockedFolder::remove() noexcept {
  try {
    if (!new_ || !is_in_place()) return;
    if (!existed_) return remove_tree(path_);
    for (const std::string& name : list_dir(path_)) remove_tree(join_path(path_, name));
  } catch (const IoError&) {  // another error is propagating, which is more informative
  }
}

RunFolder RunFolder::of_new_run(const std::string& path) {
  RunFolder found(path);
  TERCEL_CHECK(!exists(path) || (is_directory(path) && (list_dir(path).empty() || exists(found.lock()))), IoError,
               printable(path), ": expected a new folder or a run folder, but the path exists and is neither");
  return found;
}

void RunFolder::write_config(const ModelConfig& content) const { write_file_atomically(config(), to_json(content)); }

data::Dataset RunFolder::read_description() const {
  TERCEL_CHECK(exists(description()), DataError, printable(path_), ": not a run folder: ", file_name(description()),
               ", which describes the conversion of text to rows, is missing");
  data::Dataset dataset = data::dataset_from_json(read_file(description(), kMaxDescriptionBytes), description());
  dataset.folder = path_;
  return dataset;
}

void RunFolder::write_description(const data::Dataset& dataset) const {
  data::Dataset content = dataset;
  if (content.conversion && content.conversion->vocabulary) {
    data::FileRecord& record = *content.conversion->vocabulary;
    data::verify_file(dataset, record);
    write_file_atomically(join_path(path_, kVocabularyFile),
                          data::read_data_file(dataset.path_of(record), record.bytes));
    record.path = kVocabularyFile;
  }
  write_file_atomically(description(), data::dataset_to_json(content));
}

void RunFolder::remove_stale_files() const {
  for (const std::string& file :
       {config(), description(), join_path(path_, kVocabularyFile), metrics(), metrics_table(), details()})
    remove_stale_temporaries(path_, file_name(file));
  if (exists(checkpoints())) remove_stale_temporaries(checkpoints());
}

void RunFolder::forget_metrics_after(int64_t step) const {
  if (!exists(metrics())) return;
  const std::string text = read_file(metrics(), kMaxMetricsBytes);
  std::string kept;
  for (size_t start = 0, end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    const std::string line = text.substr(start, end - start);
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("step") && json.at("step").is_number_integer() &&
        json.at("step").get<int64_t>() <= step)
      kept += line + '\n';
  }
  if (kept != text) write_file_atomically(metrics(), kept);
}

}  // namespace tercel::recsys
