// Checkpoints: folders of safetensors files with a manifest, complete or absent.
//
// docs/formats/checkpoint.md has the layout. A checkpoint is written beside its name, synced and renamed, so that a
// kill at any moment leaves the ones before it, and this one whole or not at all; loading checks every file's size and
// checksum. Which tensors and what state there are is the trainer's business: here they are names and texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tercel/io/safetensors.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/** What a checkpoint says of itself, besides its files. */
struct CheckpointInfo {
  int64_t step = 0;
  std::string fingerprint;  ///< of the model, see Model::fingerprint()
  double metric = 0;        ///< what the best checkpoint is chosen by
  bool has_metric = false;

  static constexpr auto fields() {
    return std::tuple(Field{"step", &CheckpointInfo::step, "steps that were trained", at_least(0), required()},
                      Field{"fingerprint", &CheckpointInfo::fingerprint, "of the model's parameters"},
                      Field{"metric", &CheckpointInfo::metric, "by which the best is chosen"},
                      Field{"has_metric", &CheckpointInfo::has_metric, "whether it was evaluated"});
  }
};

/** A file of tensors in a checkpoint: <name>.safetensors. */
struct CheckpointFile {
  std::string name;
  std::vector<io::NamedTensor> tensors;
};

/** A complete checkpoint, verified. */
class TERCEL_API Checkpoint {
 public:
  /** Opens a checkpoint's folder and compares every file with the manifest; DataError says what is wrong with which. */
  explicit Checkpoint(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const CheckpointInfo& info() const { return info_; }
  /** The trainer's state, as JSON text. */
  const std::string& state() const { return state_; }
  /** DataError unless it is of the model with that fingerprint. */
  void check_fingerprint(const std::string& expected) const;
  /** Reads a file's tensors into the given ones; DataError, before any is read, unless names, dtypes and sizes agree.
   */
  void read(const CheckpointFile& file) const;
  /** The same, but the checkpoint's file may hold further tensors. */
  void read_some(const CheckpointFile& file) const;

 private:
  void read_tensors(const CheckpointFile& file, bool all) const;

  std::string folder_;
  CheckpointInfo info_;
  std::string state_;
  std::vector<std::string> files_;
};

/** Whether there is a checkpoint in this very folder, whole or not. */
TERCEL_API bool is_checkpoint_folder(const std::string& folder);
/** Folders of the checkpoints in a folder, by rising step; none if it does not exist. */
TERCEL_API std::vector<std::string> list_checkpoints(const std::string& folder);
/** The one with the highest metric, the earliest of equals, or the last when none was evaluated. Damaged ones are out.
 */
TERCEL_API std::optional<std::string> best_checkpoint(const std::string& folder);

/** The checkpoints of a run: folders step-000000001000 in one folder. One writer at a time, which the run's lock sees
 * to. */
class TERCEL_API CheckpointStore {
 public:
  CheckpointStore(std::string folder, int64_t keep_last);

  /**
   * Writes a checkpoint, then removes old ones: the last `keep_last` (at least 1) and the one with the best metric
   * stay. Also creates the folder if need be, and removes what a killed writer left in it.
   */
  void save(const CheckpointInfo& info, const std::string& state, Span<CheckpointFile> files);
  /** Folder of the last one; none when there is none. */
  std::optional<std::string> latest() const;

 private:
  void remove_old() const;

  std::string folder_;
  int64_t keep_last_;
};

}  // namespace tercel::recsys
