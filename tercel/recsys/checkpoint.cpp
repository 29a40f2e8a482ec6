#include "tercel/recsys/checkpoint.h"

#include <algorithm>
#include <set>

#include "tercel/recsys/fingerprint_impl.h"
#include "tercel/recsys/model/config_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/checksum.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/version.h"
#include "tercel/util/warning.h"

namespace tercel::recsys {

CheckpointVersionError::~CheckpointVersionError() = default;

namespace {

constexpr std::string_view kManifest = "manifest.json";
constexpr std::string_view kEvaluation = "evaluation.json", kTest = "test.json";
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kDamaged = ".damaged";
constexpr int64_t kOldestFormat = 2, kFormat = 3;  // those that are read; the last one is written
constexpr size_t kDigits = 12;
constexpr int64_t kAttempts = 100;

struct FileEntry {
  std::string name;
  int64_t bytes = 0;
  std::string checksum;

  static constexpr auto fields() {
    return option_list(option_field<&FileEntry::name>("name", "file in the checkpoint's folder", required()),
                       option_field<&FileEntry::bytes>("bytes", "size", at_least(0), required()),
                       option_field<&FileEntry::checksum>("checksum", "XXH3-64 in hexadecimal digits", required()));
  }
};

struct Manifest {
  std::string tercel_version;
  std::string instruction_set;
  CheckpointInfo info;
  ModelConfig config;
  data::DataIdentity data;
  std::vector<FileEntry> files;
  std::string state;

  static constexpr auto fields() {  // the configuration is read and written beside them
    return option_list(option_field<&Manifest::tercel_version>("tercel_version", "that wrote it", required()),
                       option_field<&Manifest::instruction_set>("instruction_set", "that trained it", required()),
                       option_field<&Manifest::info>("info", "its contents", required()),
                       option_field<&Manifest::data>("data", "what it was trained on", required()),
                       option_field<&Manifest::files>("files", "its files", required()),
                       option_field<&Manifest::state>("state", "of the trainer"));
  }
};
constexpr std::string_view kConfig[] = {"config"};

// Every version, past and future, can verify it: what is intact in another format must not be taken for damaged.
std::string content_checksum(const Json& content) {
  const std::string text = dump_json_line(content);
  return checksum_to_hex(checksum(text.data(), text.size()));
}

/**
 * The text of a file with a checksum of its content. From format 3 on the content has the format too: a changed digit
 * must not turn one format into another that is read.
 */
std::string sealed(Json content) {
  Json json = {{"format", kFormat}};
  content["format"] = kFormat;
  json["checksum"] = content_checksum(content);
  json["content"] = std::move(content);
  return dump_json(json);
}

/** The content of such a file, without the format. */
Json read_sealed(const std::string& path) {
  Json json = read_json_file(path, JsonErrors::Data);
  const auto entry = [&json](const char* key) {
    return json.is_object() && json.contains(key) ? json.at(key) : Json();
  };
  const Json format = entry("format");
  TERCEL_CHECK(format.is_number_integer(), DataError, path, ": format: expected an integer but found ",
               describe_json(format));
  Json content = entry("content");
  const std::string sum = content_checksum(content);
  TERCEL_CHECK(entry("checksum") == sum, DataError, path, ": expected checksum ", describe_json(entry("checksum")),
               " but the content has \"", sum, "\"");
  const bool repeats = content.is_object() && content.contains("format");
  TERCEL_CHECK(repeats ? content.at("format") == format : format <= kOldestFormat, DataError, path,
               ": format: expected that of the content, ", repeats ? describe_json(content.at("format")) : "2",
               ", but found ", describe_json(format));
  if (format < kOldestFormat || format > kFormat) {
    const bool says = content.is_object() && content.contains("tercel_version");
    throw_error<CheckpointVersionError>({path, ": expected format ", kOldestFormat, " or ", kFormat, ", which Tercel ",
                                         version(), " reads, but found ", printable(dump_json_line(format)),
                                         " of Tercel ",
                                         says ? printable(dump_json_line(content.at("tercel_version"))) : "unknown"});
  }
  if (repeats) content.erase("format");
  return content;
}

void write_manifest(const std::string& path, const Manifest& manifest) {
  Json content = write_options(manifest);
  content["config"] = config_to_json(manifest.config);
  write_file(path, sealed(std::move(content)));
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = join_path(folder, kManifest);
  TERCEL_CHECK(exists(path), DataError, folder, ": no checkpoint: there is no ", kManifest);
  const Json content = read_sealed(path);
  Manifest manifest;
  try {
    read_options(content, manifest, path, kConfig);
    TERCEL_CHECK(content.contains("config"), ConfigError, path, ": config: expected an object but found nothing");
    manifest.config = config_from_json(content.at("config"), path);
    manifest.data.schema.check(path);
  } catch (const ConfigError& e) {
    // Versions with the same format may have different options.
    if (manifest.tercel_version != version() && !manifest.tercel_version.empty())
      throw_error<CheckpointVersionError>(
          {e.what(), " (written by Tercel ", printable(manifest.tercel_version), ", this is Tercel ", version(), ")"});
    throw DataError(e.what());
  }
  for (const FileEntry& file : manifest.files)
    TERCEL_CHECK(file.name.find('/') == std::string::npos && !file.name.starts_with("."), DataError, path,
                 ": a file is called '", printable(file.name), "'");
  return manifest;
}

bool has_intact_manifest(const std::string& folder) {
  try {
    static_cast<void>(read_manifest(folder));
  } catch (const CheckpointVersionError&) {  // for another version
  } catch (const DataError&) {
    return false;
  }
  return true;
}

std::optional<Evaluation> read_evaluation(const std::string& folder, std::string_view file = kEvaluation) {
  const std::string path = join_path(folder, file);
  try {
    if (!exists(path)) return std::nullopt;
    Evaluation evaluation;
    read_options(read_sealed(path), evaluation, path);
    return evaluation;
  } catch (const DataError&) {  // damaged: treated as missing
  } catch (const ConfigError&) {
  } catch (const IoError&) {  // also if a trainer has just removed it
  }
  return std::nullopt;
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

std::string file_name_of(const std::string& name) { return name + ".safetensors"; }

}  // namespace

Checkpoint::Checkpoint(const std::string& folder, Verify verify) : folder_(folder) {
  Manifest manifest = read_manifest(folder);
  for (const FileEntry& entry : manifest.files) {
    const std::string path = join_path(folder, entry.name);
    TERCEL_CHECK(exists(path), DataError, path, ": is missing from the checkpoint");
    files_.push_back({entry.name, File::open_read(path)});
  }
  for (size_t i = 0; i < files_.size(); ++i) {
    const FileEntry& entry = manifest.files[i];
    const File& file = files_[i].file;
    const int64_t bytes = file.size();
    TERCEL_CHECK(bytes == entry.bytes, DataError, file.path(), ": expected ", entry.bytes, " bytes but found ", bytes);
    if (verify == Verify::Sizes) continue;
    const std::string found = checksum_to_hex(file_checksum(file));
    TERCEL_CHECK(found == entry.checksum, DataError, file.path(), ": expected checksum ", printable(entry.checksum),
                 " but found ", found);
  }
  info_ = std::move(manifest.info);
  identity_ = {std::move(manifest.config), std::move(manifest.data), std::move(manifest.instruction_set),
               std::move(manifest.tercel_version)};
  state_ = std::move(manifest.state);
  evaluation_ = read_evaluation(folder);
  test_ = read_evaluation(folder, kTest);
}

ScalarType Checkpoint::dtype() const {
  const std::string_view name = parts_of_fingerprint(info_.fingerprint).dtype;
  for (const ScalarType dtype : {kFloat32, kFloat64})
    if (name == to_string(dtype)) return dtype;
  throw_error<DataError>({folder_, ": expected float32 or float64 parameters, found ", printable(name)});
}

void Checkpoint::check_fingerprint(const std::string& expected) const {
  const Fingerprint found = parts_of_fingerprint(info_.fingerprint), wanted = parts_of_fingerprint(expected);
  TERCEL_CHECK(found.hash != wanted.hash || found.dtype == wanted.dtype, DataError, folder_,
               ": a checkpoint of a model with ", printable(found.dtype), " parameters: expected ", wanted.dtype);
  TERCEL_CHECK(info_.fingerprint == expected, DataError, folder_,
               ": a checkpoint of another graph or dataset: expected parameters of fingerprint ", expected, ", found ",
               info_.fingerprint);
}

void Checkpoint::read(const CheckpointFile& file) const { read_tensors(file, /*all=*/true); }
void Checkpoint::read_some(const CheckpointFile& file) const { read_tensors(file, /*all=*/false); }

File Checkpoint::open(const std::string& file) const {
  for (const OpenFile& candidate : files_)
    if (candidate.name == file) return candidate.file.duplicate();
  throw_error<DataError>({join_path(folder_, file), ": the checkpoint has no such file"});
}

void Checkpoint::read_tensors(const CheckpointFile& file, bool all) const {
  const std::string name = file_name_of(file.name);
  const io::SafetensorsReader reader(open(name));
  std::set<std::string_view> expected;
  for (const io::NamedTensor& t : file.tensors) {
    reader.find_for(t);
    expected.insert(t.name);
  }
  for (const io::TensorEntry& entry : reader.entries())
    TERCEL_CHECK(!all || expected.contains(entry.name), DataError, join_path(folder_, name), ": a tensor '",
                 printable(entry.name), "' that is not in the model");
  for (const io::NamedTensor& t : file.tensors) reader.read_into(t);
}

Tensor Checkpoint::read(const std::string& file, std::string_view name, ScalarType dtype) const {
  const io::SafetensorsReader reader(open(file_name_of(file)));
  const io::TensorEntry* const entry = reader.find(name);
  TERCEL_CHECK(entry, DataError, join_path(folder_, file_name_of(file)), ": expected a tensor '", printable(name),
               "', found none");
  return reader.read(reader.find_for(name, dtype, entry->sizes));
}

Tensor Checkpoint::map(const std::string& file, std::string_view name, ScalarType dtype, IntSpan sizes) const {
  const io::SafetensorsReader reader(open(file_name_of(file)), {.mmap = true});
  return reader.read(reader.find_for(name, dtype, sizes));
}

bool is_checkpoint_folder(const std::string& folder) { return exists(join_path(folder, kManifest)); }

std::vector<std::string> list_checkpoints(const std::string& folder) {
  std::vector<std::string> all;
  if (!exists(folder)) return all;
  for (const std::string& name : list_dir(folder))  // sorted, and so by step
    if (is_folder_name(name)) all.push_back(join_path(folder, name));
  return all;
}

std::optional<int64_t> last_step(const std::string& folder) {
  const std::vector<std::string> all = list_checkpoints(folder);
  if (all.empty()) return std::nullopt;
  return std::stoll(file_name(all.back()).substr(kPrefix.size()));
}

std::optional<double> Evaluation::score() const {
  constexpr std::string_view kLogLoss = "log_loss";
  std::optional<double> auc;
  double sum = 0, heads = 0;
  for (const Metric& metric : metrics) {
    if (metric.name == "auc") auc = metric.value;
    if (metric.name == kLogLoss) return -metric.value;
    // Of each head, "log_loss/loss1"; those of its labels have another slash.
    const size_t slash = metric.name.find('/');
    if (metric.name.substr(0, slash) != kLogLoss || metric.name.find('/', slash + 1) != std::string::npos) continue;
    sum += metric.value;
    heads += 1;
  }
  return heads == 0 ? auc : -sum / heads;
}

std::vector<std::string> rank_checkpoints(const std::string& folder) {
  struct Candidate {
    std::string folder, rows;
    double metric = 0;
    int rank = 0;  // 0: evaluated on the same rows as the last evaluation, 1: otherwise
  };
  std::vector<Candidate> all;
  std::string rows;
  for (std::string& checkpoint : list_checkpoints(folder)) {
    Candidate candidate{std::move(checkpoint), {}, 0, 1};
    if (const auto evaluation = read_evaluation(candidate.folder)) {
      if (const auto score = evaluation->score()) {
        candidate.rank = 0;
        candidate.metric = *score;
        candidate.rows = rows = evaluation->rows;
      }
    }
    all.push_back(std::move(candidate));
  }
  for (Candidate& candidate : all)
    if (candidate.rank == 0 && candidate.rows != rows) candidate.rank = 1;
  std::reverse(all.begin(), all.end());
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    if (a.rank != b.rank || a.rank != 0) return a.rank < b.rank;
    return a.metric != b.metric ? a.metric > b.metric : a.folder < b.folder;
  });
  std::vector<std::string> folders;
  for (Candidate& candidate : all) folders.push_back(std::move(candidate.folder));
  return folders;
}

std::optional<Checkpoint> open_checkpoint(const std::string& folder, Which which, Verify verify,
                                          std::vector<std::string>& warnings) {
  // If a trainer removed a listed checkpoint, there are newer ones: list again.
  for (int64_t attempt = 1;; ++attempt) {
    std::vector<std::string> candidates = rank_checkpoints(folder);
    if (which == Which::Last) {
      candidates = list_checkpoints(folder);
      std::reverse(candidates.begin(), candidates.end());
    }
    std::vector<std::string> errors;
    bool was_removed = false, is_unreadable = false;
    for (const std::string& candidate : candidates) {
      try {
        Checkpoint checkpoint(candidate, verify);
        for (const std::string& error : errors)
          warnings.push_back(
              str_cat({"skipped a damaged checkpoint: ", error, "; ", file_name(candidate), " is used instead"}));
        return checkpoint;
      } catch (const CheckpointVersionError&) {
        throw;
      } catch (const Error& e) {
        was_removed = !exists(candidate) && attempt < kAttempts;
        if (was_removed) break;
        if (e.exit_code() != ExitCode::Data && e.exit_code() != ExitCode::Io) throw;
        is_unreadable |= e.exit_code() == ExitCode::Io;
        errors.emplace_back(e.what());
      }
    }
    if (was_removed) continue;
    if (errors.empty()) return std::nullopt;
    if (is_unreadable) throw_error<IoError>({printable(folder), ": no checkpoint can be read: ", errors.front()});
    throw_error<DataError>({printable(folder), ": all checkpoints are damaged: ", errors.front()});
  }
}

CheckpointStore::CheckpointStore(std::string folder, int64_t keep_last)
    : folder_(std::move(folder)), keep_last_(keep_last) {
  TERCEL_CHECK(keep_last >= 1, ValueError, "checkpoint: expected to keep at least 1 but got ", keep_last);
}

void CheckpointStore::save(const CheckpointInfo& info, const RunIdentity& identity, const std::string& state,
                           Span<CheckpointFile> files) {
  const std::string folder = join_path(folder_, folder_name(info.step));
  create_dirs(folder_);
  remove_stale_temporaries(folder_);
  AtomicDir dir(folder);
  Manifest manifest{identity.tercel_version, identity.instruction_set, info, identity.config, identity.data, {}, state};
  for (const CheckpointFile& file : files) {
    const std::string path = join_path(dir.temporary_path(), file_name_of(file.name));
    const uint64_t sum = io::write_safetensors(path, file.tensors);
    manifest.files.push_back({file_name_of(file.name), file_size(path), checksum_to_hex(sum)});
  }
  write_manifest(join_path(dir.temporary_path(), kManifest), manifest);
  dir.commit();
  remove_old();
}

void CheckpointStore::note_evaluation(int64_t step, const Evaluation& evaluation) {
  const std::string folder = join_path(folder_, folder_name(step));
  remove_stale_temporaries(folder);
  write_file_atomically(join_path(folder, kEvaluation), sealed(write_options(evaluation)));
  remove_old();
}

void CheckpointStore::note_test(int64_t step, const Evaluation& evaluation) {
  const std::string folder = join_path(folder_, folder_name(step));
  remove_stale_temporaries(folder);
  write_file_atomically(join_path(folder, kTest), sealed(write_options(evaluation)));
}

void CheckpointStore::set_aside_after(int64_t step) {
  for (const std::string& folder : list_checkpoints(folder_)) {
    if (file_name(folder) <= folder_name(step)) continue;
    const std::string aside = folder + std::string(kDamaged);
    remove_dir_atomically(aside);  // of an earlier step
    move_dir(folder, aside);
    sync_dir(folder_);
  }
}

std::optional<std::string> CheckpointStore::latest() const {
  const std::vector<std::string> all = list_checkpoints(folder_);
  if (all.empty()) return std::nullopt;
  return all.back();
}

void CheckpointStore::remove_old() const try {
  const std::vector<std::string> all = list_checkpoints(folder_), ranked = rank_checkpoints(folder_);
  const auto best = std::find_if(ranked.begin(), ranked.end(), has_intact_manifest);
  for (size_t i = 0; i + static_cast<size_t>(keep_last_) < all.size(); ++i)
    if (best == ranked.end() || all[i] != *best) remove_dir_atomically(all[i], kManifest);
} catch (const IoError& e) {
  warn(str_cat({"old checkpoints could not be removed: ", e.what()}));
}

}  // namespace tercel::recsys
