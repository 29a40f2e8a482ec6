#include "tercel/recsys/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>

#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/run_folder_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/profile.h"
#include "tercel/util/signals.h"

namespace tercel::recsys {

namespace {

using Clock = std::chrono::steady_clock;

/** Throws an error of the same kind with another message. */
[[noreturn]] void throw_with(const Error& e, const std::string& message) {
  switch (e.exit_code()) {
    case ExitCode::Data: throw DataError(message);
    case ExitCode::Io: throw IoError(message);
    case ExitCode::Memory: throw OutOfMemoryError(message);
    case ExitCode::Numeric: throw NumericError(message);
    case ExitCode::Usage:
      if (dynamic_cast<const ConfigError*>(&e) != nullptr) throw ConfigError(message);
      throw RuntimeError(message);
    default: throw InternalError(message);
  }
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

struct Trainer::State {
  ModelConfig config;
  data::Dataset dataset;
  // In this order: cheap checks come before the folder is created, and the folder before memory is allocated.
  Session session;  // not initialised if a stop was requested meanwhile
  RunFolder folder;
  std::optional<LockedFolder> lock;
  CheckpointStore checkpoints;
  std::vector<std::string> warnings;
  File metrics_file;
  MetricValues last_metrics;
  FunctionRef<bool()> go_on;                    // of the running call of the constructor or run()
  bool must_stop_ = false, is_removed = false;  // the latter: of the run's folder, before the first step
  int64_t stopped_at = 0;                       // step of the checkpoint of a session that is not initialised
  int64_t evaluated_at = -1, saved_at = -1;
  bool saving = false, says_what_is_saved = false;
  Clock::time_point saved_time = Clock::now();

  State(const ModelConfig& cfg, const data::Dataset& set, const std::string& path, Resume resume, NewData new_data,
        FunctionRef<bool()> may_go_on)
      : config(cfg),
        dataset(set),
        session(cfg, set),
        folder(checked_folder(path)),
        lock(std::in_place, folder),
        checkpoints(folder.checkpoints(), cfg.solver.keep_checkpoints),
        go_on(may_go_on) {
    const std::optional<Checkpoint> resumed = open_resumed(resume);
    ResumeCheck check;
    if (resumed) check = session.check(*resumed, new_data);
    if (session.initialize({}, [this] { return !must_stop(); })) {
      if (resumed) continue_from(*resumed, new_data);
      return;
    }
    warnings.insert(warnings.end(), check.warnings.begin(), check.warnings.end());
    if (resumed) stopped_at = saved_at = resumed->info().step;
  }

  int64_t step() const { return session.is_initialized() ? session.steps() : stopped_at; }
  /** Stays so until run() begins. */
  bool must_stop() {
    must_stop_ = must_stop_ || stop_signal() != 0 || !go_on();
    return must_stop_;
  }

  static RunFolder checked_folder(const std::string& path) {
    RunFolder found(path);
    TERCEL_CHECK(!exists(path) || (is_directory(path) && (list_dir(path).empty() || exists(found.lock()))), IoError,
                 printable(path), ": expected a new folder or a run folder, but the path exists and is neither");
    return found;
  }

  /** The checkpoint to resume from, if there is one. */
  std::optional<Checkpoint> open_resumed(Resume resume) {
    const auto latest = checkpoints.latest();
    TERCEL_CHECK(resume == Resume::Auto || !latest, ConfigError, folder.path(),
                 ": already contains a run, with checkpoint ", latest ? *latest : "",
                 "; continue it with --resume auto, or choose another folder");
    return open_checkpoint(folder.checkpoints(), Which::Last, Verify::Contents, warnings);
  }

  void continue_from(const Checkpoint& checkpoint, NewData new_data) {
    for (std::string& warning : session.load(checkpoint, new_data)) warnings.push_back(std::move(warning));
    // Neither is in the configuration.
    std::string frozen;
    for (const std::string& name : session.frozen()) frozen += (frozen.empty() ? "" : ", ") + printable(name);
    if (!frozen.empty()) warnings.push_back("the checkpoint has frozen layers, which are not trained: " + frozen);
    if (session.is_learning_rate_set())
      warnings.push_back(
          str_cat({"the checkpoint has a learning rate in place of the schedule: ", session.learning_rate()}));
    saved_at = step();
    const std::optional<Evaluation>& evaluation = checkpoint.evaluation();
    if (evaluation && evaluation->rows == data::digest_of(session.identity().data, data::PartName::Test)) {
      evaluated_at = step();
      for (const Evaluation::Metric& metric : evaluation->metrics) last_metrics.emplace_back(metric.name, metric.value);
    }
  }

  int64_t total_steps() const {
    const data::BatchReader& reader = session.train_reader();
    const int64_t epochs = reader.options().epochs;  // 0: unlimited
    int64_t all = 0;
    if (epochs == 0 || __builtin_mul_overflow(epochs, reader.epoch_batches(), &all) ||
        __builtin_add_overflow(all, session.first_step(), &all))
      all = INT64_MAX;
    return config.solver.max_iter > 0 ? std::min(all, config.solver.max_iter) : all;
  }

  void write_metrics(const Json& line) {
    const std::string text = dump_json_line(line) + "\n";
    metrics_file.write_all(text.data(), text.size());
  }

  void save(Observer observer) {
    if (is_saved()) return;
    const ProfileRange range("save checkpoint", RangeKind::Annotation);
    session.check_finite();
    saving = true;
    const bool in_place = lock->is_in_place();
    const std::string removed = in_place ? std::string() : begin_again_elsewhere();
    session.save(checkpoints);
    saved_at = step();
    if (evaluated_at == saved_at) note_evaluation();
    saved_time = Clock::now();
    saving = false;
    if (!removed.empty()) {
      says_what_is_saved = true;
      throw_error<IoError>({printable(removed), ": the folder of the run was removed or renamed while it was trained; ",
                            saved_text(), describe_again(),
                            "; earlier checkpoints and metrics are in the old folder, if it was renamed"});
    }
    Progress p;
    p.kind = Progress::Kind::Checkpoint;
    p.step = step();
    p.total_steps = total_steps();
    p.path = checkpoints.latest().value_or("");
    observer(p);
  }

  void remove_folder() {
    lock->remove();
    is_removed = true;
  }
  bool is_saved() const { return saved_at == step() && lock->is_in_place() && checkpoints.latest(); }

  void note_evaluation() {
    Evaluation evaluation;
    evaluation.rows = data::digest_of(session.identity().data, data::PartName::Test);
    for (const auto& [name, value] : last_metrics)
      if (std::isfinite(value)) evaluation.metrics.push_back({name, value});
    checkpoints.note_evaluation(step(), evaluation);
  }

  std::string saved_text() const {
    return str_cat({"the state after step ", saved_at, " is saved in ", printable(checkpoints.latest().value_or(""))});
  }

  /** Creates the run's folder again, or one beside it if the path is taken; returns the old path. */
  std::string begin_again_elsewhere() {
    const std::string gone = folder.path();
    std::string path = gone;
    create_dirs(parent_path(gone));
    for (int64_t n = 2; !create_new_dir(path); ++n) path = str_cat({gone, "-", n});
    folder = RunFolder(path);
    lock.emplace(folder);
    lock->keep();
    checkpoints = CheckpointStore(folder.checkpoints(), config.solver.keep_checkpoints);
    metrics_file = File::append(folder.metrics());
    return gone;
  }

  /** Describes the run in the new folder once its state is saved; the dataset may be gone too. Returns what was
   * written. */
  std::string describe_again() const {
    try {
      folder.write_config(config);
      folder.write_description(dataset);
      return ", with config.json and trained_on.json";
    } catch (const Error& e) {
      return str_cat({", without trained_on.json (", e.what(), ")"});
    }
  }

  /** After an error: saves the last step if it is complete and finite; returns a message about what can be resumed. */
  std::string rescue(ExitCode kind) {
    if (says_what_is_saved) return {};
    if (step() == 0 && saved_at < 0) {
      remove_folder();
      return {};
    }
    std::string problem;
    try {
      if (is_saved()) return "; " + saved_text();
      if (saving && lock->is_in_place()) {
        problem = "could not be saved";
      } else if (!session.is_whole()) {
        problem = kind == ExitCode::Numeric ? "is not finite, and not saved"
                                            : "is lost, as the error came in the middle of an update";
      } else {
        save([](const Progress&) {});
        return "; " + saved_text();
      }
    } catch (const NumericError&) {
      problem = "is not finite, and not saved";
    } catch (const Error& e) {
      if (says_what_is_saved) return str_cat({"; ", e.what()});
      problem = str_cat({"could not be saved (", e.what(), ")"});
    }
    std::string last = "there is no checkpoint";
    try {
      if (const auto latest = checkpoints.latest()) last = str_cat({"the last checkpoint is ", printable(*latest)});
    } catch (const IoError&) {  // the folder cannot be read either
    }
    return str_cat({"; the state after step ", step(), " ", problem, "; ", last});
  }

  TrainEnd run(Observer observer);

  /** False if a stop was requested before the end. */
  bool evaluate_now(Observer observer) {
    if (evaluated_at == step() || session.test_rows() == 0) return true;
    MetricValues metrics = session.evaluate([this](int64_t) { return !must_stop(); });
    if (metrics.empty()) return false;
    last_metrics = std::move(metrics);
    evaluated_at = step();
    Json line = {{"kind", "evaluation"}, {"step", step()}};
    for (const auto& [name, value] : last_metrics) line[name] = value;
    write_metrics(line);
    if (saved_at == step()) note_evaluation();
    Progress p;
    p.kind = Progress::Kind::Evaluation;
    p.step = step();
    p.total_steps = total_steps();
    p.metrics = last_metrics;
    observer(p);
    return true;
  }
};

Trainer::Trainer(const ModelConfig& config, const data::Dataset& dataset, const std::string& folder, Resume resume,
                 NewData new_data, FunctionRef<bool()> go_on)
    : state_(std::make_unique<State>(config, dataset, folder, resume, new_data, go_on)) {
  State& s = *state_;
  if (!s.session.is_initialized()) return;
  if (s.saved_at >= 0) s.checkpoints.set_aside_after(s.saved_at);
  s.folder.remove_stale_files();
  s.folder.write_config(config);
  s.folder.write_description(dataset);
  s.folder.forget_metrics_after(s.step());
  s.metrics_file = File::append(s.folder.metrics());
  s.lock->keep();
}

Trainer::~Trainer() = default;

TrainEnd Trainer::run(Observer observer, FunctionRef<bool()> go_on) {
  state_->go_on = go_on;
  try {
    return state_->run(observer);
  } catch (const Error& e) {
    throw_with(e, e.what() + state_->rescue(e.exit_code()));
  } catch (const std::bad_alloc&) {
    throw_error<OutOfMemoryError>({"out of memory", state_->rescue(ExitCode::Memory)});
  } catch (...) {  // of the observer or go_on(): it cannot say where the step is saved
    state_->rescue(ExitCode::Internal);
    throw;
  }
}

TrainEnd Trainer::State::run(Observer observer) {
  TERCEL_CHECK(!is_removed, RuntimeError, printable(folder.path()),
               ": the run has ended before its first step, and its folder is removed: make another trainer");
  if (!session.is_initialized()) {
    remove_folder();
    return TrainEnd::Stopped;
  }
  must_stop_ = false;
  const SolverOptions& solver = config.solver;
  const int64_t total = total_steps(), per_epoch = session.train_reader().epoch_batches();
  const auto due = [&](int64_t interval) {
    return interval > 0 ? step() % interval == 0 : (step() - session.first_step()) % per_epoch == 0;
  };
  const Clock::time_point start = Clock::now();
  constexpr double kObserveSeconds = 0.1;
  struct {
    double seconds = 0, loss_sum = 0;
    int64_t rows = 0, steps = 0;  // steps: whose losses were read
  } observed, written;            // since the observer was last called, and since the last line was written
  const int64_t rows_before = session.rows();
  while (true) {
    // Before the step and not after it, so that a run resumed after a stop during an evaluation repeats it.
    if (step() > 0) {
      // Saved first, so that an error in the evaluation does not lose the training.
      if (due(solver.checkpoint_interval > 0 ? solver.checkpoint_interval : solver.eval_interval)) save(observer);
      if (due(solver.eval_interval) && !evaluate_now(observer)) break;
    }
    const bool long_ago =
        step() > 0 && solver.checkpoint_minutes > 0 && seconds_since(saved_time) >= 60 * solver.checkpoint_minutes;
    if ((step() > 0 && take_save_request()) || long_ago) save(observer);
    const double rate = session.learning_rate();
    if (must_stop() || step() >= total || !session.step()) break;
    const int64_t rows = session.rows() - rows_before;
    const double now = seconds_since(start);
    if (step() == total && session.loss_interval() > 1) session.check_finite();  // reads the last losses
    for (const double loss : session.losses())
      for (auto* since : {&observed, &written}) {
        since->loss_sum += loss;
        ++since->steps;
      }
    if (observed.steps > 0 && (now - observed.seconds >= kObserveSeconds || step() == total)) {
      Progress p;
      p.step = step();
      p.total_steps = total;
      p.rows = rows;
      p.seconds = now;
      p.loss = observed.loss_sum / static_cast<double>(observed.steps);
      p.learning_rate = rate;
      observer(p);
      observed = {now, 0, rows, 0};
    }
    if (written.steps > 0 && (now - written.seconds >= solver.display_seconds || step() == total)) {
      write_metrics({{"kind", "train"},
                     {"step", step()},
                     {"loss", written.loss_sum / static_cast<double>(written.steps)},
                     {"learning_rate", rate},
                     {"samples_per_second", static_cast<double>(rows - written.rows) / (now - written.seconds)}});
      written = {now, 0, rows, 0};
    }
  }
  if (step() == 0 && saved_at < 0) {  // stopped before anything was trained
    remove_folder();
    return TrainEnd::Stopped;
  }
  save(observer);
  const bool done = !must_stop() && evaluate_now(observer);
  save(observer);  // nothing is removed, unless the folder has disappeared meanwhile
  folder.remove_stale_files();
  return done ? TrainEnd::Done : TrainEnd::Stopped;
}

Session& Trainer::session() {
  TERCEL_CHECK(state_->session.is_initialized(), RuntimeError,
               "trainer: a stop was requested while the model was initialised");
  return state_->session;
}
Model& Trainer::model() { return session().model(); }
int64_t Trainer::step() const { return state_->step(); }
std::optional<std::string> Trainer::last_checkpoint() const { return state_->checkpoints.latest(); }
const MetricValues& Trainer::last_metrics() const { return state_->last_metrics; }
const std::vector<std::string>& Trainer::warnings() const { return state_->warnings; }

}  // namespace tercel::recsys
