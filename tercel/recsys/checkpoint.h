// Checkpoints: folders of safetensors files with a manifest, complete or absent.
//
// docs/formats/checkpoint.md has the layout. A checkpoint is written beside its name, synced and renamed, so that a
// kill at any moment leaves the ones before it, and this one whole or not at all; loading checks every file's size and
// checksum. What an evaluation gave is written later, in a small file beside the manifest. Which tensors and what state
// there are is the trainer's business: here they are names and texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tercel/io/safetensors.h"
#include "tercel/recsys/run_identity.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/** What a checkpoint says of itself, besides its files. */
struct CheckpointInfo {
  int64_t step = 0;
  std::string fingerprint;  ///< of the model, see Model::fingerprint()

  static constexpr auto fields() {
    return std::tuple(Field{"step", &CheckpointInfo::step, "steps that were trained", at_least(0), required()},
                      Field{"fingerprint", &CheckpointInfo::fingerprint, "of the model's parameters"});
  }
};

/** What an evaluation of a checkpoint's model gave. */
struct Evaluation {
  struct Metric {
    std::string name;
    double value = 0;

    static constexpr auto fields() {
      return std::tuple(Field{"name", &Metric::name, "of the metric", required()},
                        Field{"value", &Metric::value, "over the rows", required()});
    }
  };
  std::string rows;             ///< which rows: data::digest_of() of the part
  std::vector<Metric> metrics;  ///< those that are numbers

  static constexpr auto fields() {
    return std::tuple(Field{"rows", &Evaluation::rows, "digest of the part that was read", required()},
                      Field{"metrics", &Evaluation::metrics, "those that are numbers"});
  }
};

/** A file of tensors in a checkpoint: <name>.safetensors. */
struct CheckpointFile {
  std::string name;
  std::vector<io::NamedTensor> tensors;
};

/** A whole checkpoint in a format that this version does not read. Names the formats and versions of both. */
class TERCEL_API CheckpointVersionError : public DataError {
 public:
  explicit CheckpointVersionError(const std::string& message) : DataError(message) {}
  ~CheckpointVersionError() override;
  std::string_view kind() const noexcept override { return "CheckpointVersionError"; }
};

/** How much of a checkpoint is compared with its manifest. */
enum class Verify : uint8_t { Sizes, Contents };

/**
 * A complete checkpoint. Its files stay open: it can be read although the trainer, which keeps a few, removes it
 * meanwhile.
 */
class TERCEL_API Checkpoint {
 public:
  /**
   * Opens a checkpoint's folder and compares every file with the manifest; DataError says what is wrong with which,
   * CheckpointVersionError that nothing is but another version of Tercel is needed.
   */
  explicit Checkpoint(const std::string& folder, Verify verify = Verify::Contents);

  const std::string& folder() const { return folder_; }
  const CheckpointInfo& info() const { return info_; }
  const RunIdentity& identity() const { return identity_; }
  /** The trainer's state, as JSON text. */
  const std::string& state() const { return state_; }
  /** None if it was not evaluated, or if its file is damaged: the evaluation can be made again. */
  const std::optional<Evaluation>& evaluation() const { return evaluation_; }
  /** DataError unless it is of the model with that fingerprint. */
  void check_fingerprint(const std::string& expected) const;
  /** Reads a file's tensors into the given ones; DataError, before any is read, unless names, dtypes and sizes agree.
   */
  void read(const CheckpointFile& file) const;
  /** The same, but the checkpoint's file may hold further tensors. */
  void read_some(const CheckpointFile& file) const;
  /** A tensor of a file where it lies: parts are read when they are touched, and changes stay in this process. */
  Tensor map(const std::string& file, std::string_view name, ScalarType dtype, IntSpan sizes) const;

 private:
  struct OpenFile {
    std::string name;
    File file;
  };
  File open(const std::string& file) const;
  void read_tensors(const CheckpointFile& file, bool all) const;

  std::string folder_;
  CheckpointInfo info_;
  RunIdentity identity_;
  std::string state_;
  std::optional<Evaluation> evaluation_;
  std::vector<OpenFile> files_;
};

/** Whether there is a checkpoint in this very folder, whole or not. */
TERCEL_API bool is_checkpoint_folder(const std::string& folder);
/** Folders of the checkpoints in a folder, by rising step; none if it does not exist. */
TERCEL_API std::vector<std::string> list_checkpoints(const std::string& folder);
/**
 * The same, the best first: by falling AUC, the earliest of equals first; then, the last first, those that were not
 * evaluated on the rows of the last evaluation. Damaged manifests come last.
 */
TERCEL_API std::vector<std::string> rank_checkpoints(const std::string& folder);

/** Which checkpoint of several is wanted. */
enum class Which : uint8_t { Last, Best };
/**
 * The last or best one of a folder that is whole; none if the folder has none. Warnings name damaged ones that were
 * passed over; DataError if all of them are. A trainer may write and remove checkpoints meanwhile.
 */
TERCEL_API std::optional<Checkpoint> open_checkpoint(const std::string& folder, Which which, Verify verify,
                                                     std::vector<std::string>& warnings);

/** The checkpoints of a run: folders step-000000001000 in one folder. One writer at a time, which the run's lock sees
 * to. */
class TERCEL_API CheckpointStore {
 public:
  CheckpointStore(std::string folder, int64_t keep_last);

  /**
   * Writes a checkpoint, then removes old ones: the last `keep_last` (at least 1) and the best stay. Also creates the
   * folder if need be, and removes what a killed writer left in it.
   */
  void save(const CheckpointInfo& info, const RunIdentity& identity, const std::string& state,
            Span<CheckpointFile> files);
  /** Notes what the evaluation of a step's checkpoint gave; it may now be the best, and another not. */
  void note_evaluation(int64_t step, const Evaluation& evaluation);
  /** Renames the checkpoints after a step, which are damaged, to NAME.damaged: the run goes on without them. */
  void set_aside_after(int64_t step);
  /** Folder of the last one; none when there is none. */
  std::optional<std::string> latest() const;

 private:
  void remove_old() const;

  std::string folder_;
  int64_t keep_last_;
};

}  // namespace tercel::recsys
