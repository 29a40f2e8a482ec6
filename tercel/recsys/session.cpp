#include "tercel/recsys/session.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/freezing_impl.h"
#include "tercel/recsys/model/batch_memory_impl.h"
#include "tercel/recsys/model_files.h"
#include "tercel/recsys/placement_plan.h"
#include "tercel/recsys/table_placements.h"
#include "tercel/recsys/table_reader.h"
#include "tercel/util/format.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel::recsys {

namespace {

constexpr double kSchedule = -1;  // in place of a rate

/** State in a checkpoint, besides tensors. */
struct SessionState {
  int64_t step = 0;
  int64_t threads = 1;
  int64_t first_step = 0;
  double learning_rate = kSchedule;
  std::vector<std::string> frozen;
  data::ReaderPosition position;
  std::string policy;
  int64_t nan_batches = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&SessionState::step>("step", "steps that were trained", at_least(0), required()),
        option_field<&SessionState::threads>("threads", "that trained it", at_least(1)),
        option_field<&SessionState::first_step>("first_step", "steps before the first on this data", at_least(0),
                                                required()),
        option_field<&SessionState::learning_rate>("learning_rate", "that was set; -1: by the schedule",
                                                   at_least(kSchedule)),
        option_field<&SessionState::frozen>("frozen", "layers that are not trained"),
        option_field<&SessionState::position>("position", "of the reader", required()),
        option_field<&SessionState::policy>("policy", "state of the program that calls the session"),
        option_field<&SessionState::nan_batches>("nan_batches", "batches skipped by solver.on_nan", at_least(0)));
  }
};
// Format 2 had the state of a generator of dropout.
constexpr std::string_view kFormerState[] = {"generator_seed", "generator_offset"};

/** Adds a warning if the steps up to here drew other masks than those from here on will. */
SessionState read_state(const Checkpoint& checkpoint, const Graph& graph, std::vector<std::string>& warnings) {
  SessionState state;
  try {
    const Json json = parse_json(checkpoint.state(), checkpoint.folder(), JsonErrors::Data);
    read_options(json, state, checkpoint.folder(), kFormerState);
    const auto draws = [](const GraphNode& node) { return node.type == "Dropout"; };
    if (json.contains(kFormerState[0]) && std::any_of(graph.nodes.begin(), graph.nodes.end(), draws))
      warnings.push_back(
          "the checkpoint was written by a version whose Dropout drew other masks: the run will not have the bits that "
          "it would have had there");
    TERCEL_CHECK(state.learning_rate == kSchedule || state.learning_rate >= 0, ConfigError, checkpoint.folder(),
                 ": learning_rate: expected -1 or a rate that is not negative, found ", state.learning_rate);
  } catch (const ConfigError& e) {
    throw DataError(e.what());
  }
  try {
    check_names_of_parameters("frozen", graph, state.frozen);
  } catch (const ConfigError& e) {
    throw_error<DataError>({checkpoint.folder(), ": ", e.what()});
  }
  return state;
}

data::ReaderOptions train_reading(const ModelConfig& config, const Model& model) {
  data::ReaderOptions options;
  options.batch_size = config.solver.batchsize;
  options.epochs = config.solver.epochs_to_read();
  options.shuffle = config.data.shuffle;
  options.shuffle_unit = config.data.shuffle_unit;
  options.shuffle_window = config.data.shuffle_window;
  options.drop_last = config.data.drop_last;
  options.seed = config.solver.seed;
  options.num_workers = config.data.num_workers;
  options.prefetch = config.data.prefetch;
  options.on_bad_record = config.data.on_bad_record;
  options.max_bad_records = config.data.max_bad_records;
  options.inputs = model.sparse_inputs();
  options.weight = config.data.weight;
  if (config.data.validation == Validation::HeldOut) options.hold_out = config.data.hold_out;
  options.binary_labels = model.graph().has_binary_labels();
  return options;
}

/** The part of the validation rows; none if there are none. */
std::optional<data::PartName> validation_part(const data::Dataset& dataset, const ModelConfig& config) {
  switch (config.data.validation) {
    case Validation::None: return std::nullopt;
    case Validation::HeldOut: return data::PartName::Train;
    case Validation::Part: return data::PartName::Valid;
    case Validation::Auto: break;
  }
  return dataset.valid.rows() == 0 ? std::nullopt : std::optional(data::PartName::Valid);
}

data::ReaderOptions validation_reading(const ModelConfig& config, const Model& model) {
  data::ReaderOptions options = evaluation_reading(model, config);
  if (config.data.validation == Validation::HeldOut) {
    options.hold_out = config.data.hold_out;
    options.held_out = true;
  }
  return options;
}

data::Dataset described_by(const data::Schema& schema) {
  data::Dataset dataset;
  dataset.schema = schema;
  return dataset;
}

/** What a loss is that is not finite. */
std::string_view kind_of(double loss) { return std::isnan(loss) ? "NaN" : "infinite"; }

bool all_finite(const Tensor& t) {
  // In parts, so that a large table does not need a flag for each element at once.
  constexpr int64_t kPart = int64_t{1} << 20;
  const Tensor flat = t.flatten();
  for (int64_t start = 0; start < flat.numel(); start += kPart)
    if (!all(isfinite(flat.narrow(0, start, std::min(kPart, flat.numel() - start)))).item<bool>()) return false;
  return true;
}

}  // namespace

Session::Session(const ModelConfig& config, const data::Dataset& described, Model model)
    : config_(config), model_(std::move(model)), identity_(identity_of_run(config, model_, described)) {
  // They report what is wrong before anything is allocated.
  const Evaluator checked(model_, config_.solver);
  std::vector<TableLoad> tables = table_loads(model_);
  set_given_placements(config_.solver.table_placements, 0, tables);
}

Session::Session(const ModelConfig& config, const data::Schema& schema)
    : Session(config, described_by(schema), Model(config, schema)) {}

Session::Session(const ModelConfig& config, const data::Schema& schema, distributed::ProcessGroup& group)
    : Session(config, schema) {
  join(group);
}

Session::Session(const ModelConfig& config, const data::Dataset& dataset)
    : Session(config, dataset, nullptr, RankCalls::Alike) {}

Session::Session(const ModelConfig& config, const data::Dataset& dataset, distributed::ProcessGroup& group,
                 RankCalls calls)
    : Session(config, dataset, &group, calls) {}

Session::Session(const ModelConfig& config, const data::Dataset& dataset, distributed::ProcessGroup* group,
                 RankCalls calls)
    : Session(config, dataset, Model(config, dataset.schema)) {
  dataset_name_ = dataset.name();
  if (group != nullptr) join(*group);
  const auto reader = [&](data::PartName part, data::ReaderOptions options) {
    if (group_ != nullptr) {
      options.rank = group_->rank();
      options.ranks = group_->size();
    }
    return std::make_unique<data::BatchReader>(dataset, part, options);
  };
  train_reader_ = reader(data::PartName::Train, train_reading(config, model_));
  if (const std::optional<data::PartName> part = validation_part(dataset, config))
    validation_reader_ = reader(*part, validation_reading(config, model_));
  if (dataset.test.rows() > 0) test_reader_ = reader(data::PartName::Test, evaluation_reading(model_, config));
  position_ = train_reader_->position();
  leads_ = group_ != nullptr && group_->rank() == 0 && calls == RankCalls::FirstLeads;
}

Session::~Session() {
  try {
    tell(RankCommand::End);
  } catch (const Error&) {  // the group has failed, so that no rank follows any more
  }
}

void Session::initialize(const TensorOptions& place) {
  initialize(place, [] { return true; });
}

bool Session::initialize(const TensorOptions& place, FunctionRef<bool()> go_on) {
  TERCEL_CHECK(!model_.parameters().weights().defined(), RuntimeError, "session: initialize: it was called before");
  if (!model_.initialize(config_.solver.seed, place, go_on)) return false;
  for (const auto& [name, buffer] : model_.buffers()) {
    buffers_.push_back(buffer);
    kept_buffers_.push_back(empty_like(buffer));
  }
  trained_ = freeze_parameters(model_, frozen_);
  optim::OptimizerOptions dense = config_.optimizer;
  const auto rows = static_cast<double>(config_.solver.batchsize);
  for (const Head& head : model_.graph().heads) {
    l1_ += head.l1 / rows;
    l2_ += head.l2 / rows;
  }
  dense.l1 += l1_;
  dense.l2 += l2_;
  dense_.emplace(dense, model_.parameters().weights());
  if (group_ != nullptr) buckets_.emplace(model_.parameters(), *group_);
  if (config_.solver.clip_grad_value > 0) {
    const optim::GradientClip clip{config_.solver.clip_grad_value};
    dense_->set_clip(clip);
    model_.embeddings().set_clip(clip);
  }
  return true;
}

const data::BatchReader& Session::train_reader() const {
  check_dataset("train_reader");
  return *train_reader_;
}

void Session::check_dataset(const char* function) const {
  TERCEL_CHECK(train_reader_, RuntimeError, "session: ", function, ": there is no dataset, only a schema");
}

void Session::check_between_steps(const char* function) const {
  TERCEL_CHECK(is_initialized(), RuntimeError, "session: ", function, ": the model is not initialised");
  TERCEL_CHECK(phase_ != Phase::Changing, RuntimeError, "session: ", function,
               ": an error in an update or in load(), or a loss that is not finite, left the state incomplete; ",
               train_reader_ ? "load a checkpoint" : "make another session");
  TERCEL_CHECK(phase_ == Phase::Whole, RuntimeError, "session: ", function, ": step ", steps_ + 1,
               " has gradients but no update; call update() or discard() first");
}

void Session::check_gradients(const char* function) const {
  TERCEL_CHECK(phase_ == Phase::Gradients, RuntimeError, "session: ", function, ": there are no gradients of a step");
}

bool Session::step() {
  check_bad_records(bad_records_, first_bad_record_);
  tell(RankCommand::Step);
  bool trained = false;
  try {
    while (!trained && read_next("step")) {
      read_ahead();
      trained = train(read_.batch);
      keep_position(batch_bad_records_);
    }
  } catch (...) {
    note_failure();
    throw;
  }
  check_bad_records(bad_records_, first_bad_record_);
  if (!trained) {
    forget_losses();
    read_losses();
    old_losses_ = read_losses_.size();
  }
  return trained;
}

bool Session::skip() {
  tell(RankCommand::Skip);
  try {
    if (!read_next("skip")) return false;
  } catch (...) {
    note_failure();
    throw;
  }
  has_read_ahead_ = false;
  model_.embeddings().forget_announced();
  keep_position(sum_of_ranks(read_.position.bad_records));
  return true;
}

/** Reads the batch behind position_; false after the last one. */
bool Session::read_next(const char* function) {
  check_dataset(function);
  check_between_steps(function);
  if (config_.solver.max_iter > 0 && steps_ >= config_.solver.max_iter) return false;
  const ProfileRange range("read batch", RangeKind::Annotation);
  if (in_batch_) forget_ahead();
  model_.embeddings().take_announced();
  in_batch_ = true;
  if (std::exchange(has_next_, false)) {
    std::swap(read_, next_);
    return true;
  }
  if (is_ahead_) train_reader_->seek(position_);
  is_ahead_ = true;
  return read(read_);
}

/** False at the end. */
bool Session::read(ReadBatch& into) {
  const bool is_read = train_reader_->next(into.batch);
  into.position = train_reader_->position();
  into.first_bad_record = train_reader_->first_bad_record();
  return is_read;
}

/** Reads the batch behind the one that is trained, if it is ready, for the ranks that have rows of its keys. */
void Session::read_ahead() {
  has_read_ahead_ = false;
  if (group_ == nullptr || model_.embeddings().has_all_rows()) return;
  if (config_.solver.max_iter > 0 && steps_ + 1 >= config_.solver.max_iter) return;
  if (train_reader_->ready_within(0)) try {
      has_read_ahead_ = true;
      has_read_ahead_ = has_next_ = read(next_);
    } catch (const Error&) {  // the next step reads it again, and has the error
    }
  model_.embeddings().announce(has_next_ ? &next_.batch : nullptr);
}

/** Drops it; all ranks must call it. */
void Session::forget_ahead() {
  is_ahead_ |= has_read_ahead_;
  has_next_ = has_read_ahead_ = false;
  model_.embeddings().forget_announced();
}

void Session::step(const data::Batch& batch) { train(batch); }

/** A step; false if the batch was skipped instead. */
bool Session::train(const data::Batch& batch) {
  try {
    overlaps_ = group_ != nullptr;
    try {
      forward_backward(batch);
    } catch (...) {
      overlaps_ = false;
      throw;
    }
    overlaps_ = false;
    try {
      reduce();
    } catch (...) {
      discard();
      throw;
    }
    update();
  } catch (const NumericError& e) {
    if (!is_bad_ || config_.solver.on_nan != OnNan::Skip) throw;
    skip_bad(e);
    return false;
  }
  return true;
}

/** Counts a batch that is skipped; NumericError if it is one too many. */
void Session::skip_bad(const NumericError& error) {
  TERCEL_CHECK(nan_batches_ < config_.solver.max_nan_batches, NumericError, error.what(), "; with it, more than ",
               config_.solver.max_nan_batches, " batches, which solver.max_nan_batches allows, would be skipped");
  ++nan_batches_;
  if (first_nan_batch_.empty()) first_nan_batch_ = error.what();
}

void Session::forward_backward(const data::Batch& batch) {
  check_between_steps("forward_backward");
  TERCEL_CHECK(batch.rows > 0 || batch.global_rows > 0, RuntimeError, "session: step ", steps_ + 1,
               ": the batch has no rows");
  const EnableGradGuard guard;
  is_bad_ = false;
  if (buckets_) buckets_->settle();
  model_.parameters().zero_gradients();
  model_.embeddings().clear_gradients();  // the caller may have run backward
  keep_buffers();
  try {
    const Tensor loss = forward(batch);
    if (group_ != nullptr) begin_sum_of_losses(loss);
    // That of all ranks travels during backward: reading it before makes every rank wait for the slowest. But what is
    // skipped must not come so far, where it may be an error of one rank.
    const bool is_late = group_ != nullptr && config_.solver.on_nan != OnNan::Skip;
    if (!is_late) take_loss(loss, batch);
    backward(loss, batch);
    if (is_late) take_loss(loss, batch);
  } catch (...) {
    restore_buffers();
    model_.embeddings().clear_gradients();
    throw;
  }
  pending_rows_ = group_ != nullptr ? batch.global_rows - (batch_bad_records_ - bad_records_) : batch.rows;
  phase_ = Phase::Gradients;
}

/** Loss of the rows of this rank. */
Tensor Session::forward(const data::Batch& batch) {
  const ProfileRange range("forward", RangeKind::Annotation);
  const int64_t step = steps_ + 1;
  model_.forward(batch, /*training=*/true, step, result_);
  result_.logits.clear();
  TERCEL_CHECK(result_.loss.defined(), RuntimeError, "session: step ", step, ": the batch has no labels");
  return std::move(result_.loss);
}

void Session::backward(const Tensor& loss, const data::Batch& batch) {
  const ProfileRange range("backward", RangeKind::Annotation);
  model_.embeddings().send_announced();
  if (overlaps_) buckets_->begin();
  if (loss.requires_grad())  // else everything is frozen
    name_batch_without_memory([] { return "backward"; }, batch.rows, /*training=*/true, [&] { loss.backward(); });
}

/** Keeps the loss of a batch, or reads it: NumericError if it is not finite then. `own`: of the rows of this rank. */
void Session::take_loss(const Tensor& own, const data::Batch& batch) {
  const Tensor loss = reported(group_ == nullptr ? own : sum_of_losses());
  if (loss_interval_ > 1) return keep_loss(loss);
  loss_ = loss.item<double>();
  if (std::isfinite(loss_)) return;
  if (overlaps_) buckets_->finish();
  is_bad_ = true;
  restore_buffers();  // so that the pass is repeated with the same statistics
  const int64_t step = steps_ + 1;
  const std::string layer = model_.first_nonfinite_layer(batch, step);
  const bool is_elsewhere = group_ != nullptr && std::isfinite(own.item<double>());
  throw_error<NumericError>({"step ", step, ": the loss is ", kind_of(loss_),
                             is_elsewhere    ? "; that of the rows of this rank is finite"
                             : layer.empty() ? "; the outputs of all layers are finite, but not the sum of the losses"
                                             : "; the first layer that gives a NaN or an infinity is ",
                             is_elsewhere ? std::string() : layer});
}

/** With the terms of the losses' regularizers. */
Tensor Session::reported(const Tensor& loss) {
  if (l1_ == 0 && l2_ == 0) return loss;
  const NoGradGuard guard;
  const Tensor& weights = model_.parameters().weights();
  Tensor all = loss.detach();
  if (l1_ != 0) all = add(all, mul(sum(abs(weights)), l1_));
  if (l2_ != 0) all = add(all, mul(sum(mul(weights, weights)), l2_ / 2));
  return all;
}

void Session::keep_loss(const Tensor& loss) {
  const NoGradGuard guard;
  if (!kept_losses_.defined()) kept_losses_ = empty({loss_interval_}, TensorOptions(loss.dtype(), loss.device()));
  copy_(kept_losses_.select(0, kept_), loss);
}

/** Drops those that were read before the end of the last step. */
void Session::forget_losses() {
  read_losses_.erase(read_losses_.begin(), read_losses_.begin() + static_cast<int64_t>(old_losses_));
  old_losses_ = 0;
}

/** Reads the kept losses; see Note [Losses of several steps]. */
void Session::read_losses() {
  if (kept_ == 0) return;
  const Tensor losses = to(kept_losses_.narrow(0, 0, kept_), kFloat64);
  const int64_t before = steps_ - std::exchange(kept_, 0);
  for (int64_t i = 0; i < losses.numel(); ++i) {
    loss_ = losses.data<double>()[i];
    if (!std::isfinite(loss_)) {
      phase_ = Phase::Changing;
      throw_error<NumericError>({"step ", before + i + 1, ": the loss is ", kind_of(loss_), "; it was read after step ",
                                 steps_, ", at an interval of ", loss_interval_, ", so updates have used it"});
    }
    read_losses_.push_back(loss_);
  }
}

void Session::set_loss_interval(int64_t steps) {
  TERCEL_CHECK(steps >= 1, ConfigError, "loss interval: expected at least 1 step, got ", steps);
  TERCEL_CHECK(steps == 1 || config_.solver.on_nan != OnNan::Skip, ConfigError,
               "loss interval: expected 1 with solver.on_nan=skip, which reads each loss before its update, got ",
               steps);
  if (is_initialized()) {
    check_between_steps("set_loss_interval");
    read_losses();
  }
  loss_interval_ = steps;
  kept_losses_.reset();
}

/** By solver.clip_grad_norm; NumericError if the norm is not finite. */
void Session::clip_gradients() {
  const SolverOptions& solver = config_.solver;
  if (solver.clip_grad_norm == 0) return;
  const ProfileRange range("clip gradients", RangeKind::Annotation);
  optim::GradientClip clip;
  if (solver.clip_grad_value > 0) clip.limit = solver.clip_grad_value;
  norm_.clear(clip.limit);
  norm_.add(model_.parameters().gradients());
  model_.embeddings().add_to(norm_);
  gradient_norm_ = norm_.value();
  is_bad_ = !std::isfinite(gradient_norm_);
  TERCEL_CHECK(!is_bad_, NumericError, "step ", steps_ + 1, ": the norm of the gradients is ", kind_of(gradient_norm_));
  clip.scale = optim::clip_scale(gradient_norm_, solver.clip_grad_norm);
  dense_->set_clip(clip);
  model_.embeddings().set_clip(clip);
}

void Session::update() {
  check_gradients("update");
  const ProfileRange range("update", RangeKind::Annotation);
  try {
    clip_gradients();
  } catch (...) {
    discard();
    throw;
  }
  const double rate = learning_rate();
  phase_ = Phase::Changing;
  name_batch_without_memory([] { return "update"; }, pending_rows_, /*training=*/true,
                            [&] {
                              dense_->update_dense(model_.parameters().gradients(), rate, steps_ + 1, trained_);
                              model_.embeddings().update(rate, steps_ + 1);
                            });
  phase_ = Phase::Whole;
  ++steps_;
  rows_ += pending_rows_;
  forget_losses();
  if (loss_interval_ == 1)
    read_losses_.push_back(loss_);
  else if (++kept_ == loss_interval_)
    read_losses();
  old_losses_ = read_losses_.size();
}

void Session::discard() {
  check_gradients("discard");
  restore_buffers();
  model_.embeddings().clear_gradients();
  phase_ = Phase::Whole;
}

void Session::keep_buffers() {
  for (size_t i = 0; i < buffers_.size(); ++i) copy_(kept_buffers_[i], buffers_[i]);
}

void Session::restore_buffers() {
  for (size_t i = 0; i < buffers_.size(); ++i) copy_(buffers_[i], kept_buffers_[i]);
}

MetricValues Session::evaluate(data::PartName part, RowObserver observer) { return measure(part, observer).values; }

EvaluationResult Session::measure(data::PartName part, RowObserver observer) {
  TERCEL_CHECK(part != data::PartName::Train, ConfigError,
               "session: evaluate: expected the validation or the test part, found train");
  const bool is_test = part == data::PartName::Test;
  data::BatchReader* const reader = is_test ? test_reader_.get() : validation_reader_.get();
  TERCEL_CHECK(reader != nullptr, RuntimeError, "session: evaluate: there are no ", is_test ? "test" : "validation",
               " rows");
  tell(is_test ? RankCommand::Test : RankCommand::Validate);
  check_finite("evaluate");
  const ProfileRange range("evaluate", RangeKind::Annotation);
  reader->rewind();
  // Whatever happens, it keeps no threads and batches until the next time.
  struct Rewound {
    data::BatchReader& reader;
    ~Rewound() { reader.rewind(); }
  };
  const Rewound rewound{*reader};
  // Rows held out were sampled as those that are trained.
  const double shift = reader->options().held_out ? 0 : sampling_shift(identity_.data);
  try {
    EvaluationResult found = recsys::measure(model_, *reader, config_.solver, observer, shift, nullptr, group_);
    report_bad_records(*reader);
    return found;
  } catch (...) {
    note_failure();
    throw;
  }
}

std::string Session::validation_digest() const {
  if (!validation_reader_) return {};
  const data::ReaderOptions& reading = validation_reader_->options();
  std::string digest = reading.held_out
                           ? str_cat({data::digest_of(identity_.data, data::PartName::Train), "/", reading.hold_out})
                           : data::digest_of(identity_.data, data::PartName::Valid);
  if (!reading.weight.empty()) digest += "/weight=" + reading.weight;  // metrics by other weights cannot be compared
  return digest;
}

void Session::check_finite() {
  tell(RankCommand::CheckFinite);
  check_finite("check_finite");
}

void Session::check_finite(const char* function) {
  check_between_steps(function);
  read_losses();
  if (checked_at_ == steps_ && !expects_writes_) return;
  std::string bad = nonfinite_name();
  if (group_ != nullptr && !model_.embeddings().has_all_rows()) bad = text_of_ranks(*group_, bad);
  TERCEL_CHECK(bad.empty(), NumericError, "step ", steps_,
               expects_writes_ ? ": NaN or infinite: " : ": its update made ", bad,
               expects_writes_ ? "" : " NaN or infinite");
  checked_at_ = steps_;
}

/** The first weight or state of this rank that is not finite; empty if there is none. */
std::string Session::nonfinite_name() {
  const NoGradGuard guard;
  const auto is_bad = [](const Tensor& tensor) { return tensor.is_floating_point() && !all_finite(tensor); };
  if (dense_->is_finite() && model_.embeddings().is_finite() && !expects_writes_) {
    // The update kernels check everything except the buffers that forward passes change.
    for (const auto& [name, buffer] : model_.buffers())
      if (is_bad(buffer)) return name;
    return {};
  }
  for (const CheckpointFile& file : training_files(model_, *dense_))
    for (const std::vector<io::NamedTensor>* tensors : {&file.tensors, &file.others})
      for (const io::NamedTensor& t : *tensors)
        if (is_bad(t.tensor)) return t.name;
  return {};
}

void Session::save(CheckpointStore& store, std::string_view policy) {
  check_dataset("save");
  tell(RankCommand::Save);
  write(&store, policy);
}

/** All ranks write their files; rank 0 completes the checkpoint, and the store of the others may be null. */
void Session::write(CheckpointStore* store, std::string_view policy) {
  check_finite("save");
  SessionState state;
  state.step = steps_;
  state.threads = num_threads();
  state.first_step = first_step_;
  state.learning_rate = fixed_rate_.value_or(kSchedule);
  state.frozen.assign(frozen_.begin(), frozen_.end());
  state.position = position_;
  state.position.bad_records = bad_records_;
  state.policy = policy;
  state.nan_batches = nan_batches_;
  const CheckpointInfo info{steps_, model_.fingerprint()};
  const std::string text = dump_json_line(write_options(state));
  const std::vector<CheckpointFile> files = training_files(model_, *dense_);
  if (group_ == nullptr) {
    TERCEL_CHECK(model_.embeddings().has_all_rows(), RuntimeError,
                 "session: save: a part of the tables was on ranks that are lost");
    return store->save(info, identity_, text, files);
  }
  std::unique_ptr<AtomicDir> folder;
  std::vector<WrittenFile> written;
  do_on_first(group_, [&] { folder = store->begin(steps_); });
  write_files(text_of_first(*group_, folder ? folder->temporary_path() : std::string()), files, written);
  do_on_first(group_, [&] { store->commit(*folder, info, identity_, text, written); });
}

ResumeCheck Session::check(const Checkpoint& checkpoint, NewData new_data) const {
  check_dataset("check");
  ResumeCheck check = check_resume(checkpoint.identity(), identity_, new_data, checkpoint.folder(), dataset_name_);
  checkpoint.check_fingerprint(model_.fingerprint());
  return check;
}

std::vector<std::string> Session::load(const Checkpoint& checkpoint, NewData new_data) {
  TERCEL_CHECK(is_initialized(), RuntimeError, "session: load: the model is not initialised");
  check_dataset("load");
  ResumeCheck check = this->check(checkpoint, new_data);
  tell(new_data == NewData::Accept ? RankCommand::LoadNewData : RankCommand::Load, checkpoint.folder());
  SessionState state = read_state(checkpoint, model_.graph(), check.warnings);
  const int64_t bad_records = check.new_train_rows ? 0 : state.position.bad_records;
  if (group_ != nullptr && group_->rank() > 0) state.position.bad_records = 0;  // rank 0 has those of all
  forget_ahead();
  is_ahead_ = true;  // until it is known to be at a position; seek() may refuse the state's
  if (check.new_train_rows)
    train_reader_->rewind();
  else
    train_reader_->seek(state.position);
  if (phase_ == Phase::Gradients) discard();
  phase_ = Phase::Changing;
  kept_ = 0;
  read_losses_.clear();
  old_losses_ = 0;
  const TableReader tables(model_, checkpoint);
  tables.set_keys();
  const std::vector<CheckpointFile> files = training_files(model_, *dense_);
  checkpoint.read(files[0]);
  for (size_t t = 0; t + 1 < files.size(); ++t) tables.read(t, files[t + 1]);
  dense_->forget_nonfinite();
  model_.embeddings().forget_nonfinite();
  position_ = train_reader_->position();
  is_ahead_ = in_batch_ = false;
  first_step_ = check.new_train_rows ? state.step : state.first_step;
  steps_ = state.step;
  policy_ = state.policy;
  nan_batches_ = state.nan_batches;
  bad_records_ = loaded_bad_records_ = bad_records;
  first_bad_record_.clear();
  checked_at_ = -1;
  set_frozen({state.frozen.begin(), state.frozen.end()});
  fixed_rate_.reset();
  if (state.learning_rate != kSchedule) fixed_rate_ = state.learning_rate;
  phase_ = Phase::Whole;
  if (state.threads != num_threads())
    check.warnings.push_back(
        str_cat({"the checkpoint was trained with ", state.threads, state.threads == 1 ? " thread" : " threads",
                 ", this run has ", num_threads(), ": results will not be the same to the last bit"}));
  return check.warnings;
}

void Session::begin_after(int64_t steps) {
  check_between_steps("begin_after");
  TERCEL_CHECK(steps_ == 0, RuntimeError, "session: begin_after: it has trained ", steps_, " steps");
  TERCEL_CHECK(steps >= 0, ValueError, "session: begin_after: expected a number of steps, got ", steps);
  steps_ = first_step_ = steps;
  expect_writes();
}

const optim::Optimizer& Session::dense_optimizer() const {
  TERCEL_CHECK(dense_, RuntimeError, "session: dense_optimizer: initialize() comes first");
  return *dense_;
}

double Session::learning_rate() const {
  return fixed_rate_ ? *fixed_rate_ : optim::learning_rate(config_.solver, steps_ + 1);
}

void Session::set_learning_rate(double rate) {
  TERCEL_CHECK(std::isfinite(rate) && rate >= 0, ConfigError,
               "learning rate: expected a finite number that is not negative, got ", rate);
  fixed_rate_ = rate;
}

void Session::freeze(Span<std::string> names) {
  check_between_steps("freeze");
  check_names_of_parameters("freeze", model_.graph(), names);
  std::set<std::string> all = frozen_;
  all.insert(names.begin(), names.end());
  set_frozen(std::move(all));
}

void Session::unfreeze(Span<std::string> names) {
  check_between_steps("unfreeze");
  check_names_of_parameters("unfreeze", model_.graph(), names);
  std::set<std::string> all = frozen_;
  for (const std::string& name : names) all.erase(name);
  set_frozen(std::move(all));
}

void Session::set_frozen(std::set<std::string> names) {
  trained_ = freeze_parameters(model_, names);
  frozen_ = std::move(names);
}

}  // namespace tercel::recsys
