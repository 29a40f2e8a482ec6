#include "tercel/recsys/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/recsys/checkpoint_manifest_impl.h"
#include "tercel/recsys/fingerprint_impl.h"
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

constexpr std::string_view kEvaluation = "evaluation.json", kTest = "test.json";
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kDamaged = ".damaged";
constexpr size_t kDigits = 12;
constexpr int64_t kAttempts = 100;

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
  write_manifest(folder.temporary_path(), manifest);
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

bool CheckpointStore::has(int64_t step) const {
  const std::vector<std::string> all = list_checkpoints(folder_);
  return std::find(all.begin(), all.end(), join_path(folder_, folder_name(step))) != all.end();
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
