// The files of a training run: where they lie and how they are read and written. Private.
//
//   config.json      the whole configuration
//   trained_on.json  the dataset's description as it was (its files lie in the dataset's folder); it is not called
//                    dataset.json, because --force takes a folder with such a file for a dataset
//   vocabulary       copied, for raw text
//   metrics.jsonl    a line for each report and evaluation
//   checkpoints/     see checkpoint.h
//   lock             held by the trainer
#pragma once

#include <string>
#include <utility>

#include "tercel/data/dataset.h"
#include "tercel/recsys/model/config.h"
#include "tercel/util/file.h"

namespace tercel::recsys {

/** Creates a folder; takes it away again, or what has got into it if it was there, until keep() says that it counts. */
class NewFolder {
 public:
  /** A folder that holds something is no new one, and stays whatever happens. */
  explicit NewFolder(const std::string& path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  void keep() { kept_ = true; }
  void remove() noexcept;

 private:
  std::string path_;
  bool existed_, new_, kept_ = false;
};

class RunFolder {
 public:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string config() const { return join_path(path_, "config.json"); }
  std::string description() const { return join_path(path_, "trained_on.json"); }
  std::string metrics() const { return join_path(path_, "metrics.jsonl"); }
  std::string checkpoints() const { return join_path(path_, "checkpoints"); }
  std::string lock() const { return join_path(path_, "lock"); }

  void write_config(const ModelConfig& config) const;
  /** How rows look, and how raw text becomes one; DataError if it is missing. The dataset's folder is the run's: the
   * vocabulary lies there. */
  data::Dataset read_description() const;
  void write_description(const data::Dataset& dataset) const;
  /** Drops the lines of metrics() about later steps, and a line that was cut off: what a killed run did in vain. */
  void forget_metrics_after(int64_t step) const;

 private:
  std::string path_;
};

}  // namespace tercel::recsys
