// Training of a model on a dataset, from the first step or a checkpoint to the last.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"
#include "tercel/recsys/prediction.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** How far a run is; given to the observer now and then, and after each evaluation. */
struct Progress {
  enum class Kind : uint8_t { Step, Evaluation, Checkpoint };
  Kind kind = Kind::Step;
  int64_t step = 0, total_steps = 0;
  int64_t rows = 0;    ///< trained so far, in this process
  double seconds = 0;  ///< since this process began to train
  double loss = 0;     ///< mean over the steps since the last report
  double learning_rate = 0;
  MetricValues metrics;  ///< Evaluation
  std::string path;      ///< Checkpoint
};
using Observer = FunctionRef<void(const Progress&)>;

/** Whether a run goes on from the last checkpoint in its folder. */
enum class Resume : uint8_t { Never, Auto };

constexpr auto enum_names(Resume) {
  return std::to_array<EnumName<Resume>>({{Resume::Never, "never"}, {Resume::Auto, "auto"}});
}

/** Why training ended. */
enum class TrainEnd : uint8_t { Done, Stopped };

/**
 * A model in training: model, optimizers, reader and checkpoints of one run folder.
 *
 * The folder holds config.json, trained_on.json (and the dataset's vocabulary), metrics.jsonl and checkpoints/. The
 * same seed, threads and data give the same bits, in one run or in several that continue each other.
 */
class TERCEL_API Trainer {
 public:
  /**
   * Prepares a run. Never: the folder must not hold checkpoints; Auto: goes on from the last one, if there is one.
   * ConfigError, DataError or IoError say what is wrong; a second trainer on the folder is refused.
   */
  Trainer(const ModelConfig& config, const data::Dataset& dataset, const std::string& folder, Resume resume);
  ~Trainer();

  /**
   * Trains to the end of the epochs. When stop_signal() is set, the step is finished, a checkpoint is written, and the
   * result is Stopped. NumericError when the loss is not finite; it names the first layer that made it so.
   */
  TrainEnd run(Observer observer);
  Model& model();
  int64_t step() const;
  /** Folder of the last checkpoint of the run; none before the first. */
  std::optional<std::string> last_checkpoint() const;
  /** Of the last evaluation; empty before. */
  const MetricValues& last_metrics() const;
  /** What the trainer noticed and a person should know, such as another number of threads than before. */
  const std::vector<std::string>& warnings() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tercel::recsys
