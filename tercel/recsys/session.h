// A model in training: model, optimizers and readers, without a policy of when to evaluate, save or stop.
//
// Trainer is such a policy; a program may be another:
//
//   Session session(config, dataset);
//   session.initialize();
//   while (session.step()) {
//     if (session.steps() % 1000 == 0) session.evaluate(...);
//   }
//
// Note [Losses of several steps]
// Where reading a number waits for a device, one in each step would leave it idle between steps. With an interval of k
// above 1, forward_backward() keeps the loss where the model is, and update() reads k of them together; so do
// check_finite(), evaluate(), save(), and step() at the end of the data. Updates have then used a loss that is not
// finite: the NumericError names the first such step, and only load() continues. On the CPU reading one takes 2 ns.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/dataset.h"
#include "tercel/distributed/process_group.h"
#include "tercel/optim/gradient_norm.h"
#include "tercel/optim/optimizer.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/evaluate.h"
#include "tercel/recsys/gradient_buckets.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"
#include "tercel/recsys/ranks.h"
#include "tercel/recsys/run_identity.h"
#include "tercel/util/error.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** Who calls the functions of the sessions of several ranks. */
enum class RankCalls : uint8_t {
  Alike,      ///< each rank makes the same calls
  FirstLeads  ///< rank 0 steps, evaluates, checks, saves and loads; the others call follow()
};

/**
 * The state after a number of steps, and the steps. A step is a function of that state, its batch and its number; the
 * order of rows is one of seed and epoch, so that a session that loads a checkpoint continues with the same bits. Of
 * batches of the caller's, a checkpoint has no position.
 *
 * A step has three phases: forward and backward, reduction of the gradients of all ranks, update. step() runs them; who
 * calls them one by one may look at gradients in between.
 */
class TERCEL_API Session {
 public:
  /**
   * Builds the graph and opens the readers of the train part and, if they have rows, of the validation and test parts;
   * data.validation=auto means the part, and none if there is none. Nothing large is allocated before initialize().
   * ConfigError, DataError or IoError.
   */
  Session(const ModelConfig& config, const data::Dataset& dataset);
  /**
   * One rank of several that train together, each with a part of every batch, all dense weights, and of the tables
   * what solver.placement and solver.table_placements say. Losses, metrics and errors of a loss that is not finite are
   * those of the whole batch; all ranks write what save() saves, into a folder that all can reach, and it throws on all
   * of them. ConfigError if another rank has another configuration, other data or another version; DistributedError if
   * one is lost. The group must outlive the session.
   */
  Session(const ModelConfig& config, const data::Dataset& dataset, distributed::ProcessGroup& group,
          RankCalls calls = RankCalls::Alike);
  /** For batches of the caller's with rows of this schema: without readers and checkpoints. ConfigError. */
  Session(const ModelConfig& config, const data::Schema& schema);
  /** The same as one rank of several, each with its part of every batch: RankCalls::Alike. Errors as above. */
  Session(const ModelConfig& config, const data::Schema& schema, distributed::ProcessGroup& group);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /**
   * Allocates parameters, tables and states, and draws initial values from solver.seed. `place` is their dtype, float32
   * or float64, and their device: batches are taken there. Once: after an error only destruction is left. ConfigError,
   * NotImplementedError as Model::initialize(), ConfigError for options of an optimizer; OutOfMemoryError names the
   * table.
   */
  void initialize(const TensorOptions& place = {});
  /** The same while go_on() is true, which is asked regularly; false if it ended early: only destruction is left then.
   */
  bool initialize(const TensorOptions& place, FunctionRef<bool()> go_on);
  bool is_initialized() const { return dense_.has_value(); }
  /**
   * On a rank that follows (RankCalls::FirstLeads): does what rank 0 does, until the session there ends or it tells
   * something that no session does, and returns that. Errors of this rank alone; those that all ranks have are left to
   * rank 0.
   */
  RankMessage follow();
  /**
   * Whether step(), skip() or an evaluation has failed on this rank, with an error that the others need not have: they
   * wait in it, and can be called no more.
   */
  bool has_failed_alone() const { return has_failed_alone_; }
  /**
   * After a DistributedError, or if it has failed alone: the session is alone from now on, and can save the last
   * complete step unless others had a part of the tables.
   */
  void leave_ranks();

  /**
   * Trains the next batch of the train part; false, and no change, after solver.max_iter steps or at the end of the
   * epochs. Errors as below; the next call reads the batch again. With solver.on_nan=skip, batches that raise a
   * NumericError are passed over and counted; at more than solver.max_nan_batches it is raised.
   */
  bool step();
  /** Passes over the next batch of the train part instead; false if there is none. */
  bool skip();
  /**
   * Trains a batch of the caller's: forward_backward(), reduce(), update(). Exceptions before the update leave all
   * state as it was before the step. With solver.on_nan=skip, no step for a batch that raises a NumericError.
   */
  void step(const data::Batch& batch);

  /**
   * Phase one: gradients of the loss, for all parameters that are not frozen. NumericError that names the first layer
   * with such an output if the loss is not finite (with an interval of losses above 1: below). An exception leaves all
   * state as it was, but not loss().
   */
  void forward_backward(const data::Batch& batch);
  /** Phase two: adds the gradients of all ranks. */
  void reduce();
  /**
   * Phase three: clips the gradients, if the solver says so, and makes the optimizers' step. RuntimeError without
   * gradients. An exception leaves the session not whole, except a NumericError if the norm of the gradients is not
   * finite: that is a discard().
   */
  void update();
  /** Instead of update(): restores the state of before forward_backward(). RuntimeError without gradients. */
  void discard();

  /** Steps trained, also those before the checkpoint that was loaded. */
  int64_t steps() const { return steps_; }
  /** Steps before the first one on the present train rows: above 0 after loading with new data. */
  int64_t first_step() const { return first_step_; }
  /** Batches skipped by solver.on_nan, also those before the checkpoint that was loaded. */
  int64_t nan_batches() const { return nan_batches_; }
  /** What was wrong with the first one that this object skipped; empty if there was none. */
  const std::string& first_nan_batch() const { return first_nan_batch_; }
  /** Rows of bad records that were left out, also before the checkpoint that was loaded; with several ranks of all. */
  int64_t bad_records() const { return bad_records_; }
  /** What was wrong with the first one that this object left out; empty if there was none. */
  const std::string& first_bad_record() const { return first_bad_record_; }
  /** Norm of the gradients of the last step, before clipping; NaN without solver.clip_grad_norm. */
  double gradient_norm() const { return gradient_norm_; }
  /** Rows trained by this object, with several ranks those of all. */
  int64_t rows() const { return rows_; }
  /** Whether there are gradients of a step, from forward_backward() to update() or discard(). */
  bool has_gradients() const { return phase_ == Phase::Gradients; }
  /**
   * Reads the losses of `steps` steps together (Note [Losses of several steps]); 1, the default, reads each loss before
   * backward. Reads those that were kept so far. ConfigError below 1, and above with solver.on_nan=skip; RuntimeError
   * within a step.
   */
  void set_loss_interval(int64_t steps);
  int64_t loss_interval() const { return loss_interval_; }
  /**
   * The last loss that was read, of the batches of all ranks, with the terms of the losses' regularizers but not
   * those of the optimizer's l1 and l2; NaN before the first.
   */
  double loss() const { return loss_; }
  /** The losses that were read since the step before the last one ended, in the order of their steps. */
  const std::vector<double>& losses() const { return read_losses_; }
  /**
   * Whether the state is that after a complete step; false after an error in an update or in load(), and after a loss
   * that was not finite and was read after its update.
   */
  bool is_whole() const { return phase_ != Phase::Changing; }

  /**
   * Metrics on the test part, or on the validation rows; every row counts once. Warns as warn_of_bad_records(). Empty
   * if the observer stopped it, which must not evaluate or train. RuntimeError without such rows; ConfigError for the
   * train part; NumericError as check_finite().
   */
  MetricValues evaluate(RowObserver observer) { return evaluate(data::PartName::Test, observer); }
  MetricValues evaluate(data::PartName part, RowObserver observer);
  /** The same, with reliability diagrams and slices of each head. */
  EvaluationResult measure(data::PartName part, RowObserver observer);
  /** Rows of the test part; 0 without one. */
  int64_t test_rows() const { return test_reader_ ? test_reader_->epoch_rows() : 0; }
  /**
   * Validation rows: those of the dataset's validation part or, with data.validation=held_out, those held out from the
   * train part, which step() then does not see. 0 if there are none.
   */
  int64_t validation_rows() const { return validation_reader_ ? validation_reader_->epoch_rows() : 0; }
  /** Tells validation rows of one run from those of another: Evaluation::rows. Empty if there are none. */
  std::string validation_digest() const;

  /**
   * NumericError that names the first weight or state that is not finite. Reads them only to find the name, since the
   * update kernels report whether there is one.
   */
  void check_finite();
  /** Tells it that others may write to tensors of the model: check_finite() reads them all from now on. */
  void expect_writes() { expects_writes_ = true; }
  /**
   * Writes a checkpoint of the last step, with the state of the program's policy as text. RuntimeError within a step or
   * without a dataset; NumericError as check_finite().
   */
  void save(CheckpointStore& store, std::string_view policy = {});
  /** The policy's state in the checkpoint that was loaded last; empty if there was none. */
  const std::string& policy() const { return policy_; }
  /**
   * Throws what load() would for a checkpoint of another model or other data: check_resume(), and the fingerprint. Does
   * not look at the state in it. Before initialize(), as for float32.
   */
  ResumeCheck check(const Checkpoint& checkpoint, NewData new_data) const;
  /**
   * Continues from a checkpoint that check() accepts: weights, states, number of the step, position of the reader (not
   * if the train rows are new), frozen layers, learning rate that was set. Returns the accepted differences.
   */
  std::vector<std::string> load(const Checkpoint& checkpoint, NewData new_data = NewData::Refuse);
  /**
   * Before the first step: says that the values that the caller has given the model and the optimizers' states were
   * trained for so many steps elsewhere. The schedule and Adam go on behind them, the train rows begin with the first.
   * RuntimeError after a step, ValueError for a negative number.
   */
  void begin_after(int64_t steps);

  /** Of the next step: the rate that was set, else by the schedule of the solver. */
  double learning_rate() const;
  /** Sets the rate of all further steps, instead of the schedule; ConfigError if it is negative or not finite. */
  void set_learning_rate(double rate);
  bool is_learning_rate_set() const { return fixed_rate_.has_value(); }
  /** Back to the schedule, at the step that it has reached meanwhile. */
  void clear_learning_rate() { fixed_rate_.reset(); }

  /**
   * Excludes the parameters of layers, or tables, from training until unfreeze(): they get no gradient and no update,
   * neither do the states of their optimizer. Running statistics are no parameters. ConfigError, and no change, for a
   * name that no layer with parameters and no table has; RuntimeError before initialize() or within a step.
   */
  void freeze(Span<std::string> names);
  /** Trains them again; ConfigError as freeze(). No effect on those that are not frozen. */
  void unfreeze(Span<std::string> names);
  const std::set<std::string>& frozen() const { return frozen_; }

  /** Of the dense parameters' arena, with its states; those of tables are in their stores. RuntimeError before
   * initialize(). */
  const optim::Optimizer& dense_optimizer() const;

  Model& model() { return model_; }
  const ModelConfig& config() const { return config_; }
  /** Of the ranks that train together; null with one. */
  distributed::ProcessGroup* group() const { return group_; }
  const RunIdentity& identity() const { return identity_; }
  /** Of the train part; after an error it may be ahead of steps(). RuntimeError without a dataset. */
  const data::BatchReader& train_reader() const;

 private:
  enum class Phase : uint8_t {
    Whole,      // between two steps
    Gradients,  // from forward_backward() to update()
    Changing    // in an update or load(), or after an error there
  };

  /** A batch of the train part, and the state of the reader behind it. */
  struct ReadBatch {
    data::Batch batch;
    data::ReaderPosition position;
    std::string first_bad_record;
  };

  Session(const ModelConfig& config, const data::Dataset& described, Model model);
  Session(const ModelConfig& config, const data::Dataset& dataset, distributed::ProcessGroup* group, RankCalls calls);
  void join(distributed::ProcessGroup& group);
  void check_ranks() const;
  void note_failure() noexcept;
  void tell(RankCommand command, const std::string& text = {}) const;
  bool obey(RankCommand command, const std::string& text);
  void write(CheckpointStore* store, std::string_view policy);
  void write_files(const std::string& folder, Span<CheckpointFile> files, std::vector<WrittenFile>& written);
  void keep_position(int64_t bad_records_of_ranks);
  int64_t sum_of_ranks(int64_t number) const;
  void check_bad_records(int64_t count, const std::string& first) const;
  void report_bad_records(const data::BatchReader& reader) const;
  void check_between_steps(const char* function) const;
  void check_finite(const char* function);
  std::string nonfinite_name();
  void check_gradients(const char* function) const;
  void check_dataset(const char* function) const;
  bool read_next(const char* function);
  bool read(ReadBatch& into);
  void read_ahead();
  void forget_ahead();
  void set_frozen(std::set<std::string> names);
  bool train(const data::Batch& batch);
  void skip_bad(const NumericError& error);
  void clip_gradients();
  Tensor forward(const data::Batch& batch);
  void backward(const Tensor& loss, const data::Batch& batch);
  void take_loss(const Tensor& own, const data::Batch& batch);
  void begin_sum_of_losses(const Tensor& own);
  Tensor sum_of_losses();
  Tensor reported(const Tensor& loss);
  void keep_loss(const Tensor& loss);
  void forget_losses();
  void read_losses();
  void keep_buffers();
  void restore_buffers();

  ModelConfig config_;
  Model model_;
  distributed::ProcessGroup* group_ = nullptr;  // null with one rank
  bool leads_ = false;                          // the others
  bool has_failed_alone_ = false;
  std::optional<GradientBuckets> buckets_;  // with several ranks
  bool overlaps_ = false;                   // whether backward begins the sums of gradients
  Tensor loss_sums_;                        // of all ranks: the loss, and the number of bad records
  std::optional<distributed::Work> summing_losses_;
  RunIdentity identity_;
  std::string dataset_name_;
  std::unique_ptr<data::BatchReader> train_reader_, validation_reader_, test_reader_;
  std::string policy_;
  std::optional<optim::Optimizer> dense_;  // of the arena; tables have theirs
  std::set<std::string> frozen_;
  std::vector<optim::ElementRange> trained_;  // of the arena: what is not frozen
  std::optional<double> fixed_rate_;

  double l1_ = 0, l2_ = 0;  // of the losses' regularizers
  optim::GradientNorm norm_;
  double gradient_norm_ = std::numeric_limits<double>::quiet_NaN();
  bool is_bad_ = false;  // the batch of the last NumericError, for which it may be skipped
  int64_t nan_batches_ = 0;
  std::string first_nan_batch_;
  int64_t bad_records_ = 0, loaded_bad_records_ = 0;  // of all ranks, at position_; in the checkpoint
  int64_t batch_bad_records_ = 0;                     // of all ranks, with those of the batch that is trained
  std::string first_bad_record_;

  int64_t steps_ = 0, first_step_ = 0, rows_ = 0, checked_at_ = -1;
  data::ReaderPosition position_;  // after the last step
  bool is_ahead_ = false;          // the reader is ahead of it
  bool in_batch_ = false;          // one was read, and neither trained nor passed over: a step runs, or has failed
  // What was read last; the other is the batch behind it, read ahead where its keys travel to other ranks meanwhile.
  ReadBatch read_, next_;
  bool has_next_ = false, has_read_ahead_ = false;  // without it if that failed
  bool expects_writes_ = false;
  Phase phase_ = Phase::Whole;
  int64_t pending_rows_ = 0;  // of the batch whose gradients there are
  double loss_ = std::numeric_limits<double>::quiet_NaN();
  int64_t loss_interval_ = 1;
  Tensor kept_losses_;  // [loss_interval_], where the model is; undefined before the first
  int64_t kept_ = 0;    // of the last `kept_` steps, not read yet
  std::vector<double> read_losses_;
  size_t old_losses_ = 0;                       // of those read: how many there were at the end of the last step
  std::vector<Tensor> buffers_, kept_buffers_;  // what a forward pass changes, with copies from before it
  Model::Result result_;                        // a member only to reuse its memory
};

}  // namespace tercel::recsys
