#include "tercel/recsys/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
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
// Those that are read. What has no shards is written in the second one, which earlier versions read.
constexpr int64_t kOldestFormat = 2, kFormat = 3, kShardedFormat = 4;
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

struct RunEntry {
  int64_t first = 0, count = 0, step = 1;

  static constexpr auto fields() {
    constexpr double kMost = 1e15;  // sums of them do not overflow
    return option_list(
        option_field<&RunEntry::first>("first", "row", at_least(0), at_most(kMost), required()),
        option_field<&RunEntry::count>("count", "of rows", at_least(0), at_most(kMost), required()),
        option_field<&RunEntry::step>("step", "from row to row", at_least(1), at_most(kMost), required()));
  }
};

struct ShardEntry {
  std::string name, of;
  std::vector<RunEntry> rows;

  static constexpr auto fields() {
    return option_list(option_field<&ShardEntry::name>("name", "file in the checkpoint's folder", required()),
                       option_field<&ShardEntry::of>("of", "the file that it is a shard of", required()),
                       option_field<&ShardEntry::rows>("rows", "which rows it has, in its order"));
  }
};

struct ShardList {
  std::vector<ShardEntry> shards;

  static constexpr auto fields() {
    return option_list(option_field<&ShardList::shards>("shards", "files that are a part of one"));
  }
};

struct WrittenList {
  std::vector<FileEntry> files;
  std::vector<ShardEntry> shards;

  static constexpr auto fields() {
    return option_list(option_field<&WrittenList::files>("files", "that were written"),
                       option_field<&WrittenList::shards>("shards", "those of them that are a part of one"));
  }
};

struct Manifest {
  std::string tercel_version;
  std::string instruction_set;
  CheckpointInfo info;
  ModelConfig config;
  data::DataIdentity data;
  std::vector<FileEntry> files;
  std::vector<ShardEntry> shards;
  std::string state;

  static constexpr auto fields() {  // the configuration and the shards are read and written beside them
    return option_list(option_field<&Manifest::tercel_version>("tercel_version", "that wrote it", required()),
                       option_field<&Manifest::instruction_set>("instruction_set", "that trained it", required()),
                       option_field<&Manifest::info>("info", "its contents", required()),
                       option_field<&Manifest::data>("data", "what it was trained on", required()),
                       option_field<&Manifest::files>("files", "its files", required()),
                       option_field<&Manifest::state>("state", "of the trainer"));
  }
};
constexpr std::string_view kConfig = "config", kShards = "shards";
constexpr std::string_view kOthers[] = {kConfig, kShards};

// Every version, past and future, can verify it: what is intact in another format must not be taken for damaged.
std::string content_checksum(const Json& content) {
  const std::string text = dump_json_line(content);
  return checksum_to_hex(checksum(text.data(), text.size()));
}

/**
 * The text of a file with a checksum of its content. From format 3 on the content has the format too: a changed digit
 * must not turn one format into another that is read.
 */
std::string sealed(Json content, int64_t format = kFormat) {
  Json json = {{"format", format}};
  content["format"] = format;
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
  if (format < kOldestFormat || format > kShardedFormat) {
    const bool says = content.is_object() && content.contains("tercel_version");
    throw_error<CheckpointVersionError>({path, ": expected format ", kOldestFormat, " to ", kShardedFormat,
                                         ", which Tercel ", version(), " reads, but found ",
                                         printable(dump_json_line(format)), " of Tercel ",
                                         says ? printable(dump_json_line(content.at("tercel_version"))) : "unknown"});
  }
  if (repeats) content.erase("format");
  return content;
}

void write_manifest(const std::string& path, const Manifest& manifest) {
  Json content = write_options(manifest);
  content[kConfig] = config_to_json(manifest.config);
  if (!manifest.shards.empty()) content[kShards] = write_options(ShardList{manifest.shards})[kShards];
  write_file(path, sealed(std::move(content), manifest.shards.empty() ? kFormat : kShardedFormat));
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = join_path(folder, kManifest);
  TERCEL_CHECK(exists(path), DataError, folder, ": no checkpoint: there is no ", kManifest);
  const Json content = read_sealed(path);
  Manifest manifest;
  try {
    read_options(content, manifest, path, kOthers);
    TERCEL_CHECK(content.contains(kConfig), ConfigError, path, ": config: expected an object but found nothing");
    manifest.config = config_from_json(content.at(kConfig), path);
    if (content.contains(kShards)) {
      ShardList list;
      read_options(Json{{kShards, content.at(kShards)}}, list, path);
      manifest.shards = std::move(list.shards);
    }
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

constexpr std::string_view kExtension = ".safetensors";
std::string file_name_of(const std::string& name) { return name + std::string(kExtension); }

RowRuns runs_of(Span<RunEntry> entries) {
  RowRuns runs;
  for (const RunEntry& entry : entries) runs.push_back({entry.first, entry.count, entry.step});
  return runs;
}

std::vector<RunEntry> entries_of(Span<RowRun> runs) {
  std::vector<RunEntry> entries;
  for (const RowRun& run : runs) entries.push_back({run.first, run.count, run.step});
  return entries;
}

/** Adds a file to what a manifest, or a list, has of it. */
template <class List>
void add_written(const WrittenFile& file, List& list) {
  list.files.push_back({file.name, file.bytes, file.checksum});
  if (!file.shard_of.empty()) list.shards.push_back({file.name, file.shard_of, entries_of(file.rows)});
}

}  // namespace

WrittenFile write_checkpoint_file(const std::string& folder, const CheckpointFile& file, const ShardNumber& shard) {
  WrittenFile written;
  std::string name = file.name;
  if (file.shard) {
    name += str_cat({"-shard-", shard.number, "-of-", shard.count});
    written.shard_of = file.name;
    written.rows = *file.shard;
  }
  std::vector<io::NamedTensor> tensors = file.tensors;
  tensors.insert(tensors.end(), file.others.begin(), file.others.end());
  written.name = file_name_of(name);
  const std::string path = join_path(folder, written.name);
  written.checksum = checksum_to_hex(io::write_safetensors(path, tensors));
  written.bytes = file_size(path);
  return written;
}

std::string to_json(Span<WrittenFile> files) {
  WrittenList list;
  for (const WrittenFile& file : files) add_written(file, list);
  return dump_json_line(write_options(list));
}

std::vector<WrittenFile> written_files(const std::string& json) {
  const std::string where = "list of files";
  WrittenList list;
  try {
    read_options(parse_json(json, where, JsonErrors::Data), list, where);
  } catch (const ConfigError& e) {
    throw DataError(e.what());
  }
  std::vector<WrittenFile> files;
  for (const FileEntry& entry : list.files) {
    files.push_back({entry.name, entry.bytes, entry.checksum, {}, {}});
    for (const ShardEntry& shard : list.shards)
      if (shard.name == entry.name) {
        files.back().shard_of = shard.of;
        files.back().rows = runs_of(shard.rows);
      }
  }
  return files;
}

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
  for (const ShardEntry& entry : manifest.shards) {
    const auto is_file = [&entry](const FileEntry& file) { return file.name == entry.name; };
    TERCEL_CHECK(entry.name.ends_with(kExtension) && std::any_of(manifest.files.begin(), manifest.files.end(), is_file),
                 DataError, join_path(folder, kManifest), ": shards: expected one of its files, found '",
                 printable(entry.name), "'");
    shards_[entry.of].push_back({entry.name.substr(0, entry.name.size() - kExtension.size()), runs_of(entry.rows)});
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

void Checkpoint::read(const CheckpointFile& file) const {
  if (file.shard || shards_.contains(file.name))
    read_rows(file, file.all_rows);
  else
    read_tensors(file, /*all=*/true);
}
void Checkpoint::read_some(const CheckpointFile& file) const { read_tensors(file, /*all=*/false); }

File Checkpoint::open(const std::string& file) const {
  for (const OpenFile& candidate : files_)
    if (candidate.name == file) return candidate.file.duplicate();
  throw_error<DataError>({join_path(folder_, file), ": the checkpoint has no such file"});
}

std::vector<FileShard> Checkpoint::shards(const std::string& file) const {
  const auto found = shards_.find(file);
  return found == shards_.end() ? std::vector<FileShard>() : found->second;
}

struct Checkpoint::RowSource {
  io::SafetensorsReader reader;
  RowRuns rows;
};

namespace {

/** Where a rank or a file has the rows of a table; -1 for those that it does not have. */
class RowPlaces {
 public:
  explicit RowPlaces(Span<RowRun> runs) : runs_(runs) {
    int64_t rows = 0;
    for (const RowRun& run : runs) {
      before_.push_back(rows);
      rows += run.count;
    }
  }
  int64_t find(int64_t row) const {
    for (size_t i = 0; i < runs_.size(); ++i) {
      const RowRun& run = runs_[i];
      const int64_t distance = row - run.first;
      if (distance >= 0 && distance % run.step == 0 && distance / run.step < run.count)
        return before_[i] + distance / run.step;
    }
    return -1;
  }

 private:
  Span<RowRun> runs_;
  std::vector<int64_t> before_;
};

/** Copies the rows that both have. */
void copy_rows(const Tensor& from, Span<RowRun> rows, const Tensor& to, const RowPlaces& places) {
  const size_t bytes = static_cast<size_t>(from.size(1)) * item_size(from.dtype());
  const auto* source = static_cast<const std::byte*>(from.data_ptr());
  auto* const target = static_cast<std::byte*>(to.data_ptr());
  for (const RowRun& run : rows)
    for (int64_t i = 0; i < run.count; ++i, source += bytes)
      if (const int64_t place = places.find(run.first + i * run.step); place >= 0)
        std::memcpy(target + static_cast<size_t>(place) * bytes, source, bytes);
}

}  // namespace

/** The files that have rows of tensors of so many rows; DataError unless each is in one of them. */
std::vector<Checkpoint::RowSource> Checkpoint::sources_of(const CheckpointFile& file, int64_t rows) const {
  std::vector<RowSource> sources;
  const std::vector<FileShard> parts = shards(file.name);
  if (parts.empty()) {
    sources.push_back({io::SafetensorsReader(open(file_name_of(file.name)), {.mmap = true}), {{0, rows, 1}}});
    return sources;
  }
  std::vector<bool> is_there(static_cast<size_t>(rows), false);
  int64_t found = 0;
  for (const FileShard& part : parts) {
    for (const RowRun& run : part.rows)
      for (int64_t i = 0; i < run.count; ++i) {
        const int64_t row = run.first + i * run.step;
        TERCEL_CHECK(row < rows && !is_there[static_cast<size_t>(row)], DataError,
                     join_path(folder_, file_name_of(part.name)), ": expected shards with each of ", rows,
                     " rows once, found row ", row, row < rows ? " twice" : "");
        is_there[static_cast<size_t>(row)] = true;
        ++found;
      }
    sources.push_back({io::SafetensorsReader(open(file_name_of(part.name)), {.mmap = true}), part.rows});
  }
  TERCEL_CHECK(found == rows, DataError, join_path(folder_, file.name), ": expected shards with each of ", rows,
               " rows, found ", found);
  return sources;
}

/** Of tensors with so many rows in the checkpoint: those that the given ones have. */
void Checkpoint::read_rows(const CheckpointFile& file, int64_t rows) const {
  const std::vector<RowSource> sources = sources_of(file, rows);
  const auto entry = [](const RowSource& source, const io::NamedTensor& t) -> const io::TensorEntry& {
    return source.reader.find_for(t.name, t.tensor.dtype(), {count_of(source.rows), t.tensor.size(1)});
  };
  for (const RowSource& source : sources)
    for (const io::NamedTensor& t : file.tensors) static_cast<void>(entry(source, t));
  for (const io::NamedTensor& t : file.others) static_cast<void>(sources.front().reader.find_for(t));

  const RowRuns own = file.shard.value_or(RowRuns{{0, rows, 1}});
  const RowPlaces places(own);
  for (const RowSource& source : sources)
    for (const io::NamedTensor& t : file.tensors) {
      const Tensor part = source.reader.read(entry(source, t));
      if (source.rows == own)
        copy_(t.tensor.detach(), part);
      else
        copy_rows(part, source.rows, t.tensor, places);
    }
  for (const io::NamedTensor& t : file.others) sources.front().reader.read_into(t);
}

void Checkpoint::read_tensors(const CheckpointFile& file, bool all) const {
  const std::string name = file_name_of(file.name);
  const io::SafetensorsReader reader(open(name));
  std::set<std::string_view> expected;
  std::vector<io::NamedTensor> tensors = file.tensors;
  tensors.insert(tensors.end(), file.others.begin(), file.others.end());
  for (const io::NamedTensor& t : tensors) {
    reader.find_for(t);
    expected.insert(t.name);
  }
  for (const io::TensorEntry& entry : reader.entries())
    TERCEL_CHECK(!all || expected.contains(entry.name), DataError, join_path(folder_, name), ": a tensor '",
                 printable(entry.name), "' that is not in the model");
  for (const io::NamedTensor& t : tensors) reader.read_into(t);
}

Tensor Checkpoint::read(const std::string& file, std::string_view name, ScalarType dtype) const {
  const io::SafetensorsReader reader(open(file_name_of(file)));
  const io::TensorEntry* const entry = reader.find(name);
  TERCEL_CHECK(entry, DataError, join_path(folder_, file_name_of(file)), ": expected a tensor '", printable(name),
               "', found none");
  return reader.read(reader.find_for(name, dtype, entry->sizes));
}

Tensor Checkpoint::map(const std::string& file, std::string_view name, ScalarType dtype, IntSpan sizes) const {
  if (shards_.contains(file)) {
    const Tensor whole = empty(sizes, dtype);
    read_rows({file, {{std::string(name), whole}}, sizes[0]}, sizes[0]);
    return whole;
  }
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

std::unique_ptr<AtomicDir> CheckpointStore::begin(int64_t step) {
  create_dirs(folder_);
  remove_stale_temporaries(folder_);
  return std::make_unique<AtomicDir>(join_path(folder_, folder_name(step)));
}

void CheckpointStore::commit(AtomicDir& folder, const CheckpointInfo& info, const RunIdentity& identity,
                             const std::string& state, Span<WrittenFile> files) {
  Manifest manifest{
      identity.tercel_version, identity.instruction_set, info, identity.config, identity.data, {}, {}, state};
  for (const WrittenFile& file : files) add_written(file, manifest);
  write_manifest(join_path(folder.temporary_path(), kManifest), manifest);
  folder.commit();
  remove_old();
}

void CheckpointStore::save(const CheckpointInfo& info, const RunIdentity& identity, const std::string& state,
                           Span<CheckpointFile> files) {
  const std::unique_ptr<AtomicDir> folder = begin(info.step);
  std::vector<WrittenFile> written;
  for (const CheckpointFile& file : files) written.push_back(write_checkpoint_file(folder->temporary_path(), file));
  commit(*folder, info, identity, state, written);
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
