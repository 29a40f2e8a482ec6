#include "tercel/recsys/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tercel/data/batch_reader.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/learner.h"
#include "tercel/recsys/run_folder_impl.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/parallel.h"
#include "tercel/util/signals.h"

namespace tercel::recsys {

namespace {

struct MetricState {
  std::string name;
  double value = 0;

  static constexpr auto fields() {
    return std::tuple(Field{"name", &MetricState::name, "of the metric", required()},
                      Field{"value", &MetricState::value, "over the test part"});
  }
};

/** What a checkpoint keeps besides tensors. */
struct TrainerState {
  int64_t step = 0;
  int64_t threads = 1;
  int64_t batchsize = 1;
  uint64_t generator_seed = 0;
  uint64_t generator_offset = 0;
  data::ReaderPosition position;
  bool evaluated = false;
  std::vector<MetricState> metrics;  // those that are numbers

  static constexpr auto fields() {
    return std::tuple(Field{"step", &TrainerState::step, "steps that were trained", at_least(0), required()},
                      Field{"threads", &TrainerState::threads, "that trained it", at_least(1)},
                      Field{"batchsize", &TrainerState::batchsize, "rows of a step", at_least(1), required()},
                      Field{"generator_seed", &TrainerState::generator_seed, "of dropout", required()},
                      Field{"generator_offset", &TrainerState::generator_offset, "numbers drawn", required()},
                      Field{"position", &TrainerState::position, "of the reader", required()},
                      Field{"evaluated", &TrainerState::evaluated, "whether it was, after that step"},
                      Field{"metrics", &TrainerState::metrics, "of the last evaluation"});
  }
};

data::ReaderOptions reader_options(const ModelConfig& config, const Model& model) {
  data::ReaderOptions options;
  options.batch_size = config.solver.batchsize;
  options.epochs = config.solver.epochs;
  options.shuffle = config.data.shuffle;
  options.shuffle_window = config.data.shuffle_window;
  options.seed = config.solver.seed;
  options.num_workers = config.data.num_workers;
  options.prefetch = config.data.prefetch;
  options.inputs = model.sparse_inputs();
  return options;
}

double metric(const MetricValues& values, std::string_view name) {
  for (const auto& [key, value] : values)
    if (key == name) return value;
  return std::nan("");
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

struct Trainer::State {
  ModelConfig config;
  data::Dataset dataset;
  RunFolder folder;
  FileLock lock;
  Learner learner;
  data::BatchReader reader;
  CheckpointStore checkpoints;
  File metrics_file;
  std::vector<std::string> warnings;
  MetricValues last_metrics;
  int64_t step = 0, checked_at = -1, evaluated_at = -1, saved_at = -1;
  bool saved_evaluated = false;

  State(const ModelConfig& cfg, const data::Dataset& set, const std::string& path, Model built)
      : config(cfg),
        dataset(set),
        folder(path),
        lock(folder.lock()),
        learner(std::move(built), cfg),
        reader(set, data::PartName::Train, reader_options(cfg, learner.model())),
        checkpoints(folder.checkpoints(), cfg.solver.keep_checkpoints) {}

  int64_t total_steps() const {
    int64_t all = 0;
    if (__builtin_mul_overflow(config.solver.epochs, reader.epoch_batches(), &all)) all = INT64_MAX;
    return config.solver.max_iter > 0 ? std::min(all, config.solver.max_iter) : all;
  }

  void write_metrics(const Json& line) {
    const std::string text = dump_json_line(line) + "\n";
    metrics_file.write_all(text.data(), text.size());
  }

  /** The loss shows what an update broke only a step later: nothing is evaluated or saved before this has looked. */
  void check_finite() {
    if (checked_at == step) return;
    learner.check_finite(step);
    checked_at = step;
  }

  void save(Observer observer) {
    const bool evaluated = evaluated_at == step;
    if (saved_at == step && saved_evaluated == evaluated) return;
    check_finite();
    TrainerState state;
    state.step = step;
    state.threads = num_threads();
    state.batchsize = config.solver.batchsize;
    state.generator_seed = learner.model().generator().state().seed;
    state.generator_offset = learner.model().generator().state().offset;
    state.position = reader.position();
    state.evaluated = evaluated;
    for (const auto& [name, value] : last_metrics)
      if (std::isfinite(value)) state.metrics.push_back({name, value});
    CheckpointInfo info;
    info.step = step;
    info.fingerprint = learner.model().fingerprint();
    info.has_metric = evaluated && std::isfinite(metric(last_metrics, "auc"));
    if (info.has_metric) info.metric = metric(last_metrics, "auc");
    checkpoints.save(info, dump_json_line(write_options(state)), learner.files());
    saved_at = step;
    saved_evaluated = evaluated;
    Progress p;
    p.kind = Progress::Kind::Checkpoint;
    p.step = step;
    p.total_steps = total_steps();
    p.path = *checkpoints.latest();
    observer(p);
  }

  void resume(const std::string& checkpoint_folder) {
    const Checkpoint checkpoint(checkpoint_folder);
    checkpoint.check_fingerprint(learner.model().fingerprint());
    for (const CheckpointFile& file : learner.files()) checkpoint.read(file);
    TrainerState state;
    try {
      read_options(parse_json(checkpoint.state(), checkpoint_folder, JsonErrors::Data), state, checkpoint_folder);
    } catch (const ConfigError& e) {
      throw DataError(e.what());
    }
    TERCEL_CHECK(state.batchsize == config.solver.batchsize, ConfigError, checkpoint_folder,
                 ": trained with batchsize ", state.batchsize, ", but the run is to go on with ",
                 config.solver.batchsize);
    reader.seek(state.position);
    learner.model().generator().set_state({state.generator_seed, state.generator_offset});
    step = saved_at = state.step;
    saved_evaluated = state.evaluated;
    if (state.evaluated) evaluated_at = step;
    for (const auto& [name, value] : state.metrics) last_metrics.emplace_back(name, value);
    if (state.threads != num_threads())
      warnings.push_back(
          str_cat({"the checkpoint was trained with ", state.threads, state.threads == 1 ? " thread" : " threads",
                   ", this run has ", num_threads(), ": results will not be the same to the last bit"}));
  }

  /** False when a stop was asked for before the end. */
  bool evaluate_now(Observer observer) {
    if (evaluated_at == step || dataset.test.rows() == 0) return true;
    check_finite();
    MetricValues metrics =
        evaluate(learner.model(), dataset, data::PartName::Test, config, [](int64_t) { return stop_signal() == 0; });
    if (metrics.empty()) return false;
    last_metrics = std::move(metrics);
    evaluated_at = step;
    Json line = {{"kind", "evaluation"}, {"step", step}};
    for (const auto& [name, value] : last_metrics) line[name] = value;
    write_metrics(line);
    Progress p;
    p.kind = Progress::Kind::Evaluation;
    p.step = step;
    p.total_steps = total_steps();
    p.metrics = last_metrics;
    observer(p);
    return true;
  }
};

Trainer::Trainer(const ModelConfig& config, const data::Dataset& dataset, const std::string& folder, Resume resume) {
  Model model(config, dataset.schema);
  model.initialize(config.solver.seed);
  TERCEL_CHECK(
      !exists(folder) || (is_directory(folder) && (list_dir(folder).empty() || exists(RunFolder(folder).lock()))),
      IoError, printable(folder), ": expected a new folder or that of a run, found something else there");
  create_dirs(folder);
  state_ = std::make_unique<State>(config, dataset, folder, std::move(model));
  State& s = *state_;
  TERCEL_CHECK(config.solver.batchsize <= s.reader.epoch_rows(), ConfigError, "solver: batchsize is ",
               config.solver.batchsize, " but ", dataset.folder, " has ", s.reader.epoch_rows(), " train rows");
  const auto latest = s.checkpoints.latest();
  TERCEL_CHECK(resume == Resume::Auto || !latest, ConfigError, folder, ": holds a run already, with checkpoint ",
               latest ? *latest : "", "; continue it with --resume auto, or choose another folder");
  if (latest) {
    check_dataset_fits(s.folder.read_description(), dataset);
    s.resume(*latest);
  }
  s.folder.write_config(config);
  s.folder.write_description(dataset);
  s.folder.forget_metrics_after(s.step);
  s.metrics_file = File::append(s.folder.metrics());
}

Trainer::~Trainer() = default;

TrainEnd Trainer::run(Observer observer) {
  State& s = *state_;
  const SolverOptions& solver = s.config.solver;
  const int64_t total = s.total_steps(), per_epoch = s.reader.epoch_batches();
  const auto due = [](int64_t step, int64_t interval, int64_t otherwise) {
    return step % (interval > 0 ? interval : otherwise) == 0;
  };
  const Clock::time_point start = Clock::now();
  constexpr double kObserveSeconds = 0.1;
  struct {
    double seconds = 0, loss_sum = 0;
    int64_t rows = 0, steps = 0;
  } observed, written;  // since the observer was last called, and since the last line was written
  int64_t rows = 0;
  data::Batch batch;
  while (true) {
    // Before the step and not after it: so a run that a stop ended in the middle of an evaluation makes up for it.
    if (s.step > 0) {
      if (due(s.step, solver.eval_interval, per_epoch) && !s.evaluate_now(observer)) break;
      // Also where a checkpoint that was resumed has just been evaluated.
      if (s.saved_at == s.step ||
          due(s.step, solver.checkpoint_interval, solver.eval_interval > 0 ? solver.eval_interval : per_epoch))
        s.save(observer);
    }
    if (stop_signal() != 0 || s.step >= total || !s.reader.next(batch)) break;
    const double loss = s.learner.train(batch, optim::learning_rate(solver, s.step + 1), s.step + 1);
    ++s.step;
    rows += batch.rows;
    const double now = seconds_since(start);
    for (auto* since : {&observed, &written}) {
      since->loss_sum += loss;
      ++since->steps;
    }
    if (now - observed.seconds >= kObserveSeconds || s.step == total) {
      Progress p;
      p.step = s.step;
      p.total_steps = total;
      p.rows = rows;
      p.seconds = now;
      p.loss = observed.loss_sum / static_cast<double>(observed.steps);
      p.learning_rate = optim::learning_rate(solver, s.step);
      observer(p);
      observed = {now, 0, rows, 0};
    }
    if (now - written.seconds >= solver.display_seconds || s.step == total) {
      s.write_metrics({{"kind", "train"},
                       {"step", s.step},
                       {"loss", written.loss_sum / static_cast<double>(written.steps)},
                       {"learning_rate", optim::learning_rate(solver, s.step)},
                       {"samples_per_second", static_cast<double>(rows - written.rows) / (now - written.seconds)}});
      written = {now, 0, rows, 0};
    }
  }
  const bool done = stop_signal() == 0 && s.evaluate_now(observer);
  s.save(observer);
  return done ? TrainEnd::Done : TrainEnd::Stopped;
}

Model& Trainer::model() { return state_->learner.model(); }
int64_t Trainer::step() const { return state_->step; }
std::optional<std::string> Trainer::last_checkpoint() const { return state_->checkpoints.latest(); }
const MetricValues& Trainer::last_metrics() const { return state_->last_metrics; }
const std::vector<std::string>& Trainer::warnings() const { return state_->warnings; }

}  // namespace tercel::recsys
