// Paths, reading and writing of a training run's files. Private.
//
//   config.json      the whole configuration
//   trained_on.json  the dataset's description as it was (its files lie in the dataset's folder); it is not called
//                    dataset.json, because --force takes a folder with such a file for a dataset
//   vocabulary       copied, for raw text
//   metrics.jsonl    a line for each report and evaluation
//   metrics.csv      the same as a table
//   details.json     reliability diagrams and slices of the last evaluation
//   checkpoints/     see checkpoint.h
//   lock             held by the trainer
#pragma once

#include <string>
#include <utility>

#include "tercel/data/dataset.h"
#include "tercel/recsys/model/config.h"
#include "tercel/util/file.h"

namespace tercel::recsys {

class RunFolder {
 public:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  /** IoError if there is something else at the path. */
  static RunFolder of_new_run(const std::string& path);

  const std::string& path() const { return path_; }
  std::string config() const { return join_path(path_, "config.json"); }
  std::string description() const { return join_path(path_, "trained_on.json"); }
  std::string metrics() const { return join_path(path_, "metrics.jsonl"); }
  std::string metrics_table() const { return join_path(path_, "metrics.csv"); }
  std::string details() const { return join_path(path_, "details.json"); }
  std::string checkpoints() const { return join_path(path_, "checkpoints"); }
  std::string lock() const { return join_path(path_, "lock"); }

  void write_config(const ModelConfig& config) const;
  /** Schema and conversion of the dataset; DataError if it is missing. Its folder is the run's, which contains the
   * vocabulary. */
  data::Dataset read_description() const;
  void write_description(const data::Dataset& dataset) const;
  /** Removes what a killed trainer left of these files and of checkpoints, half written or half removed. */
  void remove_stale_files() const;
  /** Drops metrics() of later steps, and an incomplete line, which a killed run left. */
  void forget_metrics_after(int64_t step) const;

 private:
  std::string path_;
};

/**
 * A run's folder under its lock, created if missing. Unless keep() is called, a new one is removed again, or its
 * content if it existed.
 */
class LockedFolder {
 public:
  /** IoError if another process holds the lock, whose folder is left alone. */
  explicit LockedFolder(const RunFolder& folder);
  ~LockedFolder();
  LockedFolder(const LockedFolder&) = delete;
  LockedFolder& operator=(const LockedFolder&) = delete;

  /** False if the folder was removed or renamed. */
  bool is_in_place() const { return lock_.is_in_place(); }
  void keep() { kept_ = true; }
  /** Removes a folder that held nothing but the lock when it was locked. */
  void remove() noexcept;

 private:
  std::string path_;
  bool existed_;
  FileLock lock_;  // held while the folder is looked at, and while it is removed
  bool new_, kept_ = false;
};

}  // namespace tercel::recsys
