// Paths, reading and writing of a training run's files. Private.
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

/** Creates a folder. Unless keep() is called, removes it again, or its content if it existed. */
class NewFolder {
 public:
  /** A folder that is not empty is never removed. */
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
  /** Schema and conversion of the dataset; DataError if it is missing. Its folder is the run's, which contains the
   * vocabulary. */
  data::Dataset read_description() const;
  void write_description(const data::Dataset& dataset) const;
  /** Drops metrics() of later steps, and an incomplete line, which a killed run left. */
  void forget_metrics_after(int64_t step) const;

 private:
  std::string path_;
};

}  // namespace tercel::recsys
