// Checkpoints: folders of safetensors files with a manifest, complete or absent.
//
// docs/formats/checkpoint.md has the layout. A checkpoint is written under a temporary name, synced and renamed, so
// that a kill at any moment keeps the older ones, and this one is complete or absent; loading checks every file's size
// and checksum. Results of an evaluation are written later, to a small file beside the manifest. The trainer decides
// which tensors and state to store: here they are names and strings.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/io/safetensors.h"
#include "tercel/recsys/embedding/table_shard.h"
#include "tercel/recsys/run_identity.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/** Metadata of a checkpoint. */
struct CheckpointInfo {
  int64_t step = 0;
  std::string fingerprint;  ///< of the model: Model::fingerprint()

  static constexpr auto fields() {
    return option_list(option_field<&CheckpointInfo::step>("step", "steps that were trained", at_least(0), required()),
                       option_field<&CheckpointInfo::fingerprint>("fingerprint", "of the model's parameters"));
  }
};

/** Results of an evaluation of a checkpoint's model. */
struct Evaluation {
  struct Metric {
    std::string name;
    double value = 0;

    static constexpr auto fields() {
      return option_list(option_field<&Metric::name>("name", "of the metric", required()),
                         option_field<&Metric::value>("value", "over the rows", required()));
    }
  };
  std::string rows;             ///< which rows: data::digest_of() of the part
  std::vector<Metric> metrics;  ///< those that are numbers

  /**
   * By which models are compared, higher is better: minus the log loss, of several heads the mean of theirs, or AUC
   * where there is no log loss. None without either. Log loss varies less between samples of rows than AUC: of two
   * models it names the better one from fewer rows, and it rises as soon as a model overfits.
   */
  TERCEL_API std::optional<double> score() const;

  static constexpr auto fields() {
    return option_list(option_field<&Evaluation::rows>("rows", "digest of the part that was read", required()),
                       option_field<&Evaluation::metrics>("metrics", "those that are numbers"));
  }
};

/** A file of tensors in a checkpoint: <name>.safetensors. */
struct CheckpointFile {
  std::string name;
  std::vector<io::NamedTensor> tensors;
  int64_t all_rows = 0;  ///< of each of them, in all shards together; 0: they have no rows
  /**
   * If set, the tensors have a part of the rows, these in this order: the file is a shard. Rows of a table that grows
   * have no numbers that ranks share: the list is empty.
   */
  std::optional<RowRuns> shard = {};
  std::vector<io::NamedTensor> others = {};  ///< further tensors of the file, which have no rows
};

/** A shard of a file in a checkpoint. */
struct FileShard {
  std::string name;  ///< <name>.safetensors is its file
  RowRuns rows;      ///< of the whole file, in the shard's order; none if they have no numbers
};

/** A file that was written for a checkpoint, as the manifest has it. */
struct WrittenFile {
  std::string name;
  int64_t bytes = 0;
  std::string checksum;
  std::string shard_of;  ///< name of the whole file, if it is a shard
  RowRuns rows;          ///< as in FileShard
};

/** Which of several shards, written by as many ranks. */
struct ShardNumber {
  int64_t number = 0, count = 1;
};

/** Writes a file, or a shard of one, into a folder and syncs it. Errors of io::write_safetensors(). */
TERCEL_API WrittenFile write_checkpoint_file(const std::string& folder, const CheckpointFile& file,
                                             const ShardNumber& shard = {});
/** A list of files as a line of JSON, and back; DataError for other text. */
TERCEL_API std::string to_json(Span<WrittenFile> files);
TERCEL_API std::vector<WrittenFile> written_files(const std::string& json);

/** An intact checkpoint in a format that this version does not read. Names the formats and versions of both. */
class TERCEL_API CheckpointVersionError : public DataError {
 public:
  explicit CheckpointVersionError(const std::string& message) : DataError(message) {}
  ~CheckpointVersionError() override;
  std::string_view kind() const noexcept override { return "CheckpointVersionError"; }
};

/** How much of a checkpoint is compared with its manifest. */
enum class Verify : uint8_t { Sizes, Contents };

/**
 * A complete checkpoint. Its files stay open, so that it can be read even if a trainer removes it
 * meanwhile.
 */
class TERCEL_API Checkpoint {
 public:
  /**
   * Opens a checkpoint's folder and compares every file with the manifest; DataError names the damaged file,
   * CheckpointVersionError means that the checkpoint needs another version of Tercel.
   */
  explicit Checkpoint(const std::string& folder, Verify verify = Verify::Contents);

  const std::string& folder() const { return folder_; }
  const CheckpointInfo& info() const { return info_; }
  const RunIdentity& identity() const { return identity_; }
  /** The trainer's state, as JSON text. */
  const std::string& state() const { return state_; }
  /** On validation rows. None if it was not evaluated, or if its file is damaged, as it can be repeated. */
  const std::optional<Evaluation>& evaluation() const { return evaluation_; }
  /** On the test part, which nothing is chosen by; of the model that a run ended with. */
  const std::optional<Evaluation>& test() const { return test_; }
  /** Of the parameters, by the fingerprint; DataError for one that models do not have. */
  ScalarType dtype() const;
  /** DataError unless the model has that fingerprint; it names the dtypes if only they differ. */
  void check_fingerprint(const std::string& expected) const;
  /**
   * Reads a file's tensors into the given ones, which may be a shard; so may be what the checkpoint has. DataError,
   * before any is read, unless names, dtypes and sizes agree.
   */
  void read(const CheckpointFile& file) const;
  /** The same, but the checkpoint's file may hold further tensors. */
  void read_some(const CheckpointFile& file) const;
  /** Reads a tensor whose sizes only the file knows; DataError unless there is one of that name and dtype. */
  Tensor read(const std::string& file, std::string_view name, ScalarType dtype) const;
  /** The shards of a file; none if the checkpoint has it as a whole. */
  std::vector<FileShard> shards(const std::string& file) const;
  /**
   * Maps a tensor of a file: pages are read when they are touched, and changes stay in this process. One that is in
   * shards is read.
   */
  Tensor map(const std::string& file, std::string_view name, ScalarType dtype, IntSpan sizes) const;

 private:
  struct OpenFile {
    std::string name;
    File file;
  };
  /** Rows of tensors that are in one file. */
  struct RowSource;

  File open(const std::string& file) const;
  std::vector<RowSource> sources_of(const CheckpointFile& file, int64_t rows) const;
  void read_rows(const CheckpointFile& file, int64_t rows) const;
  void read_tensors(const CheckpointFile& file, bool all) const;

  std::string folder_;
  CheckpointInfo info_;
  RunIdentity identity_;
  std::string state_;
  std::optional<Evaluation> evaluation_, test_;
  std::vector<OpenFile> files_;
  std::map<std::string, std::vector<FileShard>> shards_;  // by the whole file
};

/** Whether this folder is itself a checkpoint, intact or not. */
TERCEL_API bool is_checkpoint_folder(const std::string& folder);
/** Folders of the checkpoints in a folder, by ascending step; none if it does not exist. */
TERCEL_API std::vector<std::string> list_checkpoints(const std::string& folder);
/** The step of the last one, intact or not, from its name; none if there are none. */
TERCEL_API std::optional<int64_t> last_step(const std::string& folder);
/**
 * The same, best first: by descending Evaluation::score(), ties by ascending step; then those not evaluated on the rows
 * of the last evaluation, by descending step. Only the evaluations are read: any of them may be damaged.
 */
TERCEL_API std::vector<std::string> rank_checkpoints(const std::string& folder);

/** Which checkpoint of several to open. */
enum class Which : uint8_t { Last, Best };
/**
 * The last or best intact checkpoint of a folder; none if the folder has none. Warnings name those that were skipped
 * because they are damaged or cannot be read; DataError (IoError if one cannot be read) if that holds for all. A
 * trainer may write and remove checkpoints meanwhile.
 */
TERCEL_API std::optional<Checkpoint> open_checkpoint(const std::string& folder, Which which, Verify verify,
                                                     std::vector<std::string>& warnings);

/** The checkpoints of a run: folders step-000000001000 in one folder. One writer at a time, ensured by the run's
 * lock. */
class TERCEL_API CheckpointStore {
 public:
  CheckpointStore(std::string folder, int64_t keep_last);

  /**
   * Writes a checkpoint, then removes old ones (a warn() if that fails): the last `keep_last` (at least 1) and the best
   * stay. Also creates the folder if missing, and removes partial checkpoints of a killed writer.
   */
  void save(const CheckpointInfo& info, const RunIdentity& identity, const std::string& state,
            Span<CheckpointFile> files);
  /** The same in two parts, between which others may write files: an empty folder for a step's files. */
  std::unique_ptr<AtomicDir> begin(int64_t step);
  /** The checkpoint of these files, which are in the folder. */
  void commit(AtomicDir& folder, const CheckpointInfo& info, const RunIdentity& identity, const std::string& state,
              Span<WrittenFile> files);
  /** Stores the evaluation of a step's checkpoint on validation rows, which may change which one is the best. */
  void note_evaluation(int64_t step, const Evaluation& evaluation);
  /** Stores that on the test part. */
  void note_test(int64_t step, const Evaluation& evaluation);
  /** Renames the checkpoints after a step, which are damaged, to NAME.damaged, so that the run continues without. */
  void set_aside_after(int64_t step);
  /** Folder of the last one; none when there is none. */
  std::optional<std::string> latest() const;
  /** Whether there is that of a step. */
  bool has(int64_t step) const;

 private:
  void remove_old() const;

  std::string folder_;
  int64_t keep_last_;
};

}  // namespace tercel::recsys
