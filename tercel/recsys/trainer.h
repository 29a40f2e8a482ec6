// Training of a model on a dataset in a run folder, from the beginning or from a checkpoint.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/recsys/evaluate.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"
#include "tercel/recsys/run_identity.h"
#include "tercel/recsys/run_plan.h"
#include "tercel/recsys/session.h"
#include "tercel/recsys/warm_start.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** Progress of a run, for the observer; reported regularly, and after each evaluation. */
struct Progress {
  enum class Kind : uint8_t { Step, Evaluation, Checkpoint };
  Kind kind = Kind::Step;
  int64_t step = 0, total_steps = 0;
  int64_t rows = 0;    ///< trained so far, in this process
  double seconds = 0;  ///< since this process began to train
  double loss = 0;     ///< mean over the steps since the last report
  double learning_rate = 0;
  data::PartName part = data::PartName::Valid;  ///< Evaluation: of the validation rows, or at the end of the test part
  MetricValues metrics;                         ///< Evaluation
  std::string path;                             ///< Checkpoint
};
using Observer = FunctionRef<void(const Progress&)>;

/** Whether a run resumes from the last checkpoint in its folder. */
enum class Resume : uint8_t { Never, Auto };

constexpr auto enum_names(Resume) {
  return std::to_array<EnumName<Resume>>({{Resume::Never, "never"}, {Resume::Auto, "auto"}});
}

/** Why training ended: Early is Done before the last epoch, as validations did not find a better model any more. */
enum class TrainEnd : uint8_t { Done, Early, Stopped };

constexpr auto enum_names(TrainEnd) {
  return std::to_array<EnumName<TrainEnd>>(
      {{TrainEnd::Done, "done"}, {TrainEnd::Early, "early"}, {TrainEnd::Stopped, "stopped"}});
}

/** What a run has found so far. */
struct RunResult {
  /** Of the best model: the one of the best validation, or the last one of a run without validation rows. */
  int64_t best_step = 0;
  MetricValues valid;           ///< of the best model, on the validation rows; empty without
  MetricValues test;            ///< of the best model, on the test part, at the end of the run; empty without
  int64_t validations = 0;      ///< of this process
  bool passed_targets = false;  ///< the last validation passed solver.targets, so that the run has ended
  std::string error;            ///< that ended run(): its text without what is saved where
};

/**
 * The policy of a run: when the steps of a Session are evaluated, saved, reported and ended, in one run folder.
 *
 * The model is evaluated on validation rows (see plan_run()), which choose the best checkpoint and, with
 * solver.early_stop or solver.targets, the end. The test part is evaluated once, at the end, with the best model.
 *
 * The folder holds config.json, trained_on.json (and the dataset's vocabulary), metrics.jsonl, metrics.csv,
 * details.json, checkpoints/, and events for TensorBoard if solver.tensorboard asks for them. The
 * same seed, threads and data give the same bits, in one run or in several that continue each other.
 */
class TERCEL_API Trainer {
 public:
  /**
   * Prepares a run. Never: the folder must not hold checkpoints; Auto: resumes from the last intact one, if there is
   * one and check_resume() accepts it; accepted differences are in warnings(). Throws ConfigError, DataError or
   * IoError; a second trainer on the folder is an error.
   *
   * A stop is requested when stop_signal() is set or go_on() returns false. go_on() is called between steps, batches of
   * evaluations and parts of tables, on the thread of the caller. While tables are initialised, a stop ends that early,
   * nothing is written, and run() returns Stopped at once.
   *
   * With a group, this is rank 0, which alone decides, writes and reports; each other rank calls follow_trainer(). The
   * group must outlive the trainer.
   */
  Trainer(
      const ModelConfig& config, const data::Dataset& dataset, const std::string& folder, Resume resume,
      NewData new_data = NewData::Refuse, FunctionRef<bool()> go_on = +[] { return true; },
      distributed::ProcessGroup* group = nullptr);
  ~Trainer();

  /**
   * Trains to the end; then the session has the best model, and further calls return at once. When a stop is requested,
   * the step is finished, a checkpoint is written (before the first step, a new folder is removed again instead), and
   * the result is Stopped; take_save_request() writes one and continues. NumericError if the loss is not finite; it
   * names the first layer with such an output. Before an error propagates, the last complete step is saved, if its
   * state is finite, and the message names the checkpoint; before the first step, a new folder is removed again, and
   * the trainer cannot run any more. IoError also if the folder was removed meanwhile: the state is then saved in a new
   * folder there, or beside it.
   */
  TrainEnd run(
      Observer observer, FunctionRef<bool()> go_on = +[] { return true; });
  /**
   * Begins a run without a checkpoint with the weights of another model: recsys::warm_start(). After its errors, which
   * leave no new folder behind, the trainer cannot run. RuntimeError if the run has a checkpoint or has trained. The
   * other ranks load the same checkpoint.
   */
  WarmStart warm_start(LoadedModel& from);
  /**
   * Between steps it may be read, evaluated, frozen or given another rate; what run() saves at a step is not saved
   * again at the same one, so that such a change is part of the next checkpoint. It must not load another state.
   * RuntimeError if it was not initialised, because a stop was requested.
   */
  Session& session();
  /** That of the session. */
  Model& model();
  /** Steps of the run, also after its end, when the session has the best model, of an earlier step. */
  int64_t step() const;
  /** Rows that an epoch trains: those of the train part without those that are held out to validate. */
  int64_t train_rows() const;
  /** Folder of the last checkpoint of the run; none before the first. */
  std::optional<std::string> last_checkpoint() const;
  /** Metrics of the last evaluation, on validation rows or at the end on the test part; empty before. */
  const MetricValues& last_metrics() const;
  const RunResult& result() const;
  /** The configuration with what the run has decided. */
  const RunPlan& plan() const;
  /** Warnings: how the run differs from its checkpoint, and damaged checkpoints. */
  const std::vector<std::string>& warnings() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/** Trains as a rank other than 0, of the same configuration and dataset, until the trainer of rank 0 ends. */
TERCEL_API void follow_trainer(const ModelConfig& config, const data::Dataset& dataset,
                               distributed::ProcessGroup& group);

}  // namespace tercel::recsys
