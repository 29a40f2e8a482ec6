#include "tercel/recsys/checkpoint.h"

#include <algorithm>
#include <set>

#include "tercel/util/atomic_file.h"
#include "tercel/util/checksum.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/version.h"

namespace tercel::recsys {

namespace {

constexpr std::string_view kManifest = "manifest.json";
constexpr std::string_view kPrefix = "step-";
constexpr int64_t kFormat = 1;
constexpr size_t kDigits = 12;

struct FileEntry {
  std::string name;
  int64_t bytes = 0;
  std::string checksum;

  static constexpr auto fields() {
    return std::tuple(Field{"name", &FileEntry::name, "file in the checkpoint's folder", required()},
                      Field{"bytes", &FileEntry::bytes, "size", at_least(0), required()},
                      Field{"checksum", &FileEntry::checksum, "XXH3-64 in hexadecimal digits", required()});
  }
};

struct Manifest {
  std::string tercel_version;
  CheckpointInfo info;
  std::vector<FileEntry> files;
  std::string state;

  static constexpr auto fields() {
    return std::tuple(Field{"tercel_version", &Manifest::tercel_version, "that wrote it"},
                      Field{"info", &Manifest::info, "what it holds", required()},
                      Field{"files", &Manifest::files, "its files", required()},
                      Field{"state", &Manifest::state, "of the trainer"});
  }
};

std::string content_checksum(const Json& content) {
  const std::string text = dump_json_line(content);
  return checksum_to_hex(checksum(text.data(), text.size()));
}

void write_manifest(const std::string& path, const Manifest& manifest) {
  Json json = {{"format", kFormat}};
  Json content = write_options(manifest);
  json["checksum"] = content_checksum(content);
  json["content"] = std::move(content);
  write_file(path, dump_json(json));
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = join_path(folder, kManifest);
  TERCEL_CHECK(exists(path), DataError, folder, ": no checkpoint: there is no ", kManifest);
  const Json json = read_json_file(path, JsonErrors::Data);
  const auto entry = [&json](const char* key) {
    return json.is_object() && json.contains(key) ? json.at(key) : Json();
  };
  TERCEL_CHECK(entry("format") == kFormat, DataError, path, ": format: expected ", kFormat, " but found ",
               describe_json(entry("format")));
  const std::string sum = content_checksum(entry("content"));
  TERCEL_CHECK(entry("checksum") == sum, DataError, path, ": expected checksum ", describe_json(entry("checksum")),
               " but the content has \"", sum, "\"");
  Manifest manifest;
  try {
    read_options(entry("content"), manifest, path);
  } catch (const ConfigError& e) {
    throw DataError(e.what());
  }
  for (const FileEntry& file : manifest.files)
    TERCEL_CHECK(file.name.find('/') == std::string::npos && !file.name.starts_with("."), DataError, path,
                 ": a file is called '", printable(file.name), "'");
  return manifest;
}

std::string folder_name(int64_t step) {
  const std::string digits = std::to_string(step);
  TERCEL_CHECK(step >= 0 && digits.size() <= kDigits, ValueError, "checkpoint: step ", step, " is not in 0 to 10^",
               kDigits, " - 1");
  return std::string(kPrefix) + std::string(kDigits - digits.size(), '0') + digits;
}

bool is_folder_name(const std::string& name) {
  return name.size() == kPrefix.size() + kDigits && name.starts_with(kPrefix) &&
         name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
}

std::string file_name_of(const CheckpointFile& file) { return file.name + ".safetensors"; }

}  // namespace

Checkpoint::Checkpoint(const std::string& folder) : folder_(folder) {
  Manifest manifest = read_manifest(folder);
  for (const FileEntry& file : manifest.files) {
    const std::string path = join_path(folder, file.name);
    TERCEL_CHECK(exists(path), DataError, path, ": is missing from the checkpoint");
    const int64_t bytes = file_size(path);
    TERCEL_CHECK(bytes == file.bytes, DataError, path, ": expected ", file.bytes, " bytes but found ", bytes);
    const std::string found = checksum_to_hex(file_checksum(path));
    TERCEL_CHECK(found == file.checksum, DataError, path, ": expected checksum ", file.checksum, " but found ", found);
    files_.push_back(file.name);
  }
  info_ = std::move(manifest.info);
  state_ = std::move(manifest.state);
}

void Checkpoint::check_fingerprint(const std::string& expected) const {
  TERCEL_CHECK(info_.fingerprint == expected, DataError, folder_,
               ": a checkpoint of another graph or dataset: expected parameters of fingerprint ", expected, ", found ",
               info_.fingerprint);
}

void Checkpoint::read(const CheckpointFile& file) const { read_tensors(file, /*all=*/true); }
void Checkpoint::read_some(const CheckpointFile& file) const { read_tensors(file, /*all=*/false); }

void Checkpoint::read_tensors(const CheckpointFile& file, bool all) const {
  const std::string name = file_name_of(file), path = join_path(folder_, name);
  TERCEL_CHECK(std::find(files_.begin(), files_.end(), name) != files_.end(), DataError, path,
               ": the checkpoint has no such file");
  const io::SafetensorsReader reader(path);
  std::set<std::string_view> expected;
  for (const io::NamedTensor& t : file.tensors) {
    reader.find_for(t);
    expected.insert(t.name);
  }
  for (const io::TensorEntry& entry : reader.entries())
    TERCEL_CHECK(!all || expected.contains(entry.name), DataError, path, ": a tensor '", printable(entry.name),
                 "' that is not expected");
  for (const io::NamedTensor& t : file.tensors) reader.read_into(t);
}

bool is_checkpoint_folder(const std::string& folder) { return exists(join_path(folder, kManifest)); }

std::vector<std::string> list_checkpoints(const std::string& folder) {
  std::vector<std::string> all;
  if (!exists(folder)) return all;
  for (const std::string& name : list_dir(folder))  // sorted, and so by step
    if (is_folder_name(name)) all.push_back(join_path(folder, name));
  return all;
}

std::optional<std::string> best_checkpoint(const std::string& folder) {
  std::optional<std::string> best, last;
  double best_metric = 0;
  for (const std::string& candidate : list_checkpoints(folder)) {
    try {
      const CheckpointInfo info = read_manifest(candidate).info;
      last = candidate;
      if (!info.has_metric || (best && info.metric <= best_metric)) continue;
      best = candidate;
      best_metric = info.metric;
    } catch (const DataError&) {  // damaged: not the best, and nothing that should stop a run
    }
  }
  return best ? best : last;
}

CheckpointStore::CheckpointStore(std::string folder, int64_t keep_last)
    : folder_(std::move(folder)), keep_last_(keep_last) {
  TERCEL_CHECK(keep_last >= 1, ValueError, "checkpoint: expected to keep at least 1 but got ", keep_last);
}

void CheckpointStore::save(const CheckpointInfo& info, const std::string& state, Span<CheckpointFile> files) {
  const std::string folder = join_path(folder_, folder_name(info.step));
  create_dirs(folder_);
  remove_stale_temporaries(folder_);
  AtomicDir dir(folder, kManifest);
  Manifest manifest;
  manifest.tercel_version = version();
  manifest.info = info;
  manifest.state = state;
  for (const CheckpointFile& file : files) {
    const std::string path = join_path(dir.temporary_path(), file_name_of(file));
    const uint64_t sum = io::write_safetensors(path, file.tensors);
    manifest.files.push_back({file_name_of(file), file_size(path), checksum_to_hex(sum)});
  }
  write_manifest(join_path(dir.temporary_path(), kManifest), manifest);
  dir.commit();
  remove_old();
}

std::optional<std::string> CheckpointStore::latest() const {
  const std::vector<std::string> all = list_checkpoints(folder_);
  if (all.empty()) return std::nullopt;
  return all.back();
}

void CheckpointStore::remove_old() const {
  const std::vector<std::string> all = list_checkpoints(folder_);
  const std::optional<std::string> best = best_checkpoint(folder_);
  for (size_t i = 0; i + static_cast<size_t>(keep_last_) < all.size(); ++i)
    if (all[i] != best) remove_dir_atomically(all[i]);
}

}  // namespace tercel::recsys
