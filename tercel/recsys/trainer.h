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
#include "tercel/recsys/run_identity.h"
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
   * Prepares a run. Never: the folder must not hold checkpoints; Auto: goes on from the last whole one, if there is
   * one, as far as check_resume() lets it: what differs from it is in warnings(). ConfigError, DataError or IoError say
   * what is wrong; a second trainer on the folder is refused.
   */
  Trainer(const ModelConfig& config, const data::Dataset& dataset, const std::string& folder, Resume resume,
          NewData new_data = NewData::Refuse);
  ~Trainer();

  /**
   * Trains to the end. When stop_signal() is set, the step is finished, a checkpoint is written, and the result is
   * Stopped; take_save_request() writes one and goes on. NumericError when the loss is not finite; it names the first
   * layer that made it so. Before an error leaves, the last whole step is saved, if its state is finite, and the
   * message says where; before the first step, a new folder is removed again. IoError also when the folder was removed
   * meanwhile: what can be saved then lies there anew, or beside it.
   */
  TrainEnd run(Observer observer);
  Model& model();
  int64_t step() const;
  /** Folder of the last checkpoint of the run; none before the first. */
  std::optional<std::string> last_checkpoint() const;
  /** Of the last evaluation; empty before. */
  const MetricValues& last_metrics() const;
  /** What the trainer noticed and a person should know: how the run differs from its checkpoint, and damaged ones. */
  const std::vector<std::string>& warnings() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tercel::recsys
