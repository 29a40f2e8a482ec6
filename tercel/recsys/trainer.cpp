#include "tercel/recsys/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <utility>

#include "tercel/distributed/error.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/report/run_records_impl.h"
#include "tercel/recsys/run_folder_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/profile.h"
#include "tercel/util/signals.h"
#include "tercel/util/warning.h"

namespace tercel::recsys {

namespace {

using Clock = std::chrono::steady_clock;

/** Throws an error of the same kind with another message. */
[[noreturn]] void throw_with(const Error& e, const std::string& message) {
  if (dynamic_cast<const JobEndedError*>(&e) != nullptr) throw JobEndedError(e.exit_code(), message);
  switch (e.exit_code()) {
    case ExitCode::Data: throw DataError(message);
    case ExitCode::Io: throw IoError(message);
    case ExitCode::Memory: throw OutOfMemoryError(message);
    case ExitCode::Numeric: throw NumericError(message);
    case ExitCode::Communication: throw DistributedError(message);
    case ExitCode::Usage:
      if (dynamic_cast<const ConfigError*>(&e) != nullptr) throw ConfigError(message);
      throw RuntimeError(message);
    default: throw InternalError(message);
  }
}

/** The best validation so far; part of every checkpoint, so that a resumed run ends where an uninterrupted one does. */
struct Selection {
  std::string rows;        // which were validated on
  int64_t best_step = -1;  // -1: none yet
  double best_score = 0;
  int64_t worse = 0;       // validations since
  int64_t last_step = -1;  // of the last validation that is counted here

  static constexpr auto fields() {
    return option_list(option_field<&Selection::rows>("rows", "digest of the validation rows"),
                       option_field<&Selection::best_step>("best_step", "of the best validation", at_least(-1)),
                       option_field<&Selection::best_score>("best_score", "its score"),
                       option_field<&Selection::worse>("worse", "validations since", at_least(0)),
                       option_field<&Selection::last_step>("last_step", "of the last validation", at_least(-1)));
  }
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

struct Trainer::State {
  RunPlan plan;
  const ModelConfig& config = plan.config;
  data::Dataset dataset;
  distributed::ProcessGroup* group;  // null with one rank
  // In this order: cheap checks come before the folder is created, and the folder before memory is allocated.
  Session session;  // not initialised if a stop was requested meanwhile
  RunFolder folder;
  std::optional<LockedFolder> lock;
  CheckpointStore checkpoints;
  std::vector<std::string> warnings;
  File metrics_file;
  std::optional<RunRecords> records;
  MetricValues last_metrics;
  FunctionRef<bool()> go_on;                    // of the running call of the constructor or run()
  bool must_stop_ = false, is_removed = false;  // the latter: of the run's folder, before the first step
  int64_t stopped_at = 0;                       // step of the checkpoint of a session that is not initialised
  int64_t evaluated_at = -1, saved_at = -1;
  Selection selection;
  RunResult result;
  std::optional<int64_t> ended_at;  // step of the end; the session has the best model then
  TrainEnd end = TrainEnd::Done;
  bool early = false;
  bool saving = false, says_what_is_saved = false;
  Clock::time_point saved_time = Clock::now();

  State(const ModelConfig& cfg, const data::Dataset& set, const std::string& path, Resume resume, NewData new_data,
        FunctionRef<bool()> may_go_on, distributed::ProcessGroup* ranks)
      : plan(plan_run(cfg, set)),
        dataset(set),
        group(ranks == nullptr || ranks->size() == 1 ? nullptr : ranks),
        session(ranks == nullptr ? Session(config, set) : Session(config, set, *ranks, RankCalls::FirstLeads)),
        folder(RunFolder::of_new_run(path)),
        lock(std::in_place, folder),
        checkpoints(folder.checkpoints(), config.solver.keep_checkpoints),
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

  int64_t step() const { return ended_at ? *ended_at : session.is_initialized() ? session.steps() : stopped_at; }
  /** Stays so until run() begins. */
  bool must_stop() {
    must_stop_ = must_stop_ || stop_signal() != 0 || !go_on();
    return must_stop_;
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
    if (!session.policy().empty())
      read_options(parse_json(session.policy(), checkpoint.folder(), JsonErrors::Data), selection, checkpoint.folder());
    const std::string rows = session.validation_digest();
    if (selection.rows != rows) selection = {};  // scores on other rows cannot be compared
    const std::optional<Evaluation>& evaluation = checkpoint.evaluation();
    if (evaluation && !rows.empty() && evaluation->rows == rows) {
      last_metrics = metrics_of(*evaluation);
      note_validation();
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
    records->add(line);
  }

  void open_metrics() {
    records.reset();
    metrics_file = File::append(folder.metrics());
    records.emplace(folder, config, session.model(), step());
  }

  /** Whether the last evaluation, of this step, passed the targets. */
  bool passes_targets() const {
    return evaluated_at == step() && recsys::passes_targets(config.solver.targets, last_metrics);
  }

  void save(Observer observer) {
    if (is_saved()) return;
    const ProfileRange range("save checkpoint", RangeKind::Annotation);
    session.check_finite();
    saving = true;
    const bool in_place = lock->is_in_place();
    const std::string removed = in_place ? std::string() : begin_again_elsewhere();
    // A state that depends on how often a run is validated is saved only where it has an effect.
    session.save(checkpoints, config.solver.early_stop > 0 ? dump_json_line(write_options(selection)) : "");
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

  static Evaluation evaluation_of(const MetricValues& metrics, std::string rows) {
    Evaluation evaluation;
    evaluation.rows = std::move(rows);
    for (const auto& [name, value] : metrics)
      if (std::isfinite(value)) evaluation.metrics.push_back({name, value});
    return evaluation;
  }
  static MetricValues metrics_of(const Evaluation& evaluation) {
    MetricValues metrics;
    for (const Evaluation::Metric& metric : evaluation.metrics) metrics.emplace_back(metric.name, metric.value);
    return metrics;
  }
  std::string test_digest() const {
    const std::string& weight = session.config().data.weight;
    return data::digest_of(session.identity().data, data::PartName::Test) +
           (weight.empty() ? std::string() : "/weight=" + weight);
  }

  void note_evaluation() {
    checkpoints.note_evaluation(step(), evaluation_of(last_metrics, session.validation_digest()));
  }

  /** Compares the last validation, of this step, with the best one. */
  void note_validation() {
    evaluated_at = step();
    selection.rows = session.validation_digest();
    // A checkpoint written after the validation of its step has counted it already.
    if (std::exchange(selection.last_step, step()) != step()) count_validation();
    if (selection.best_step != step()) return;
    result.best_step = step();
    result.valid = last_metrics;
  }

  void count_validation() {
    const std::optional<double> score = evaluation_of(last_metrics, {}).score();
    if (!score && selection.best_step < 0) return;  // nothing to compare: none of them can be called worse
    if (!score || (selection.best_step >= 0 && *score <= selection.best_score)) {
      ++selection.worse;
      return;
    }
    selection.best_step = step();
    selection.best_score = *score;
    selection.worse = 0;
  }

  bool ends_early() const { return config.solver.early_stop > 0 && selection.worse >= config.solver.early_stop; }

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
    open_metrics();
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
      // A rank that is lost right behind a checkpoint: it is there, although not all ranks have heard of it.
      if (saving && kind == ExitCode::Communication && checkpoints.has(step())) saved_at = step();
      if (is_saved()) return "; " + saved_text();
      // Whose rank is lost can save alone, also where all of them were about to.
      if (saving && kind != ExitCode::Communication && lock->is_in_place()) {
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
  bool validate_now(Observer observer) {
    if (evaluated_at == step() || session.validation_rows() == 0) return true;
    if (!evaluate(data::PartName::Valid)) return false;
    ++result.validations;
    note_validation();
    if (saved_at == step())
      note_evaluation();
    else if (selection.best_step == step())
      save(observer);  // the best model is kept, whatever the interval of checkpoints
    report_evaluation(data::PartName::Valid, observer);
    return true;
  }

  /** The same; sets last_metrics. */
  bool evaluate(data::PartName part) {
    EvaluationResult found = session.measure(part, [this](int64_t) { return !must_stop(); });
    if (found.values.empty()) return false;
    last_metrics = std::move(found.values);
    Json line = {{"kind", "evaluation"}, {"part", to_string(part)}, {"step", session.steps()}};
    for (const auto& [name, value] : last_metrics) line[name] = value;
    write_metrics(line);
    if (lock->is_in_place())  // else save() begins again elsewhere
      records->add_details(
          {std::string(to_string(part)), session.steps(), config.solver.slice_by, std::move(found.heads)});
    return true;
  }

  void report_evaluation(data::PartName part, Observer observer) const {
    Progress p;
    p.kind = Progress::Kind::Evaluation;
    p.step = session.steps();
    p.total_steps = total_steps();
    p.part = part;
    p.metrics = last_metrics;
    observer(p);
  }

  /**
   * The end of a run whose last step is validated and saved: takes the best model, and evaluates the test part with it,
   * unless that was done before.
   */
  bool finish(Observer observer) {
    ended_at = step();
    std::vector<std::string> passed_over;
    std::optional<Checkpoint> best = open_checkpoint(
        folder.checkpoints(), session.validation_rows() > 0 ? Which::Best : Which::Last, Verify::Sizes, passed_over);
    for (const std::string& text : passed_over) warn(text);
    TERCEL_CHECK(best, IoError, printable(folder.checkpoints()), ": the checkpoints vanished while the run ended");
    if (best->info().step != session.steps()) {
      best = Checkpoint(best->folder());     // now its content is compared too
      session.load(*best, NewData::Accept);  // it may be the model with which training on new rows began
    }
    result.best_step = session.steps();
    if (best->evaluation() && session.validation_rows() > 0) result.valid = metrics_of(*best->evaluation());
    if (session.test_rows() == 0) return true;
    if (best->test() && best->test()->rows == test_digest()) {
      result.test = last_metrics = metrics_of(*best->test());
      return true;
    }
    if (!evaluate(data::PartName::Test)) return false;
    result.test = last_metrics;
    checkpoints.note_test(session.steps(), evaluation_of(last_metrics, test_digest()));
    report_evaluation(data::PartName::Test, observer);
    return true;
  }
};

Trainer::Trainer(const ModelConfig& config, const data::Dataset& dataset, const std::string& folder, Resume resume,
                 NewData new_data, FunctionRef<bool()> go_on, distributed::ProcessGroup* group)
    : state_(std::make_unique<State>(config, dataset, folder, resume, new_data, go_on, group)) {
  State& s = *state_;
  if (!s.session.is_initialized()) return;
  if (s.saved_at >= 0) s.checkpoints.set_aside_after(s.saved_at);
  s.folder.remove_stale_files();
  s.folder.write_config(s.config);
  s.folder.write_description(dataset);
  s.folder.forget_metrics_after(s.step());
  s.open_metrics();
  s.lock->keep();
}

Trainer::~Trainer() = default;

TrainEnd Trainer::run(Observer observer, FunctionRef<bool()> go_on) {
  state_->go_on = go_on;
  try {
    state_->result.error.clear();
    return state_->run(observer);
  } catch (const Error& e) {
    state_->result.error = e.what();
    const bool has_lost_ranks = dynamic_cast<const DistributedError*>(&e) != nullptr;
    if (has_lost_ranks || state_->session.has_failed_alone()) state_->session.leave_ranks();
    throw_with(e, e.what() + state_->rescue(has_lost_ranks ? ExitCode::Communication : e.exit_code()));
  } catch (const std::bad_alloc&) {
    if (state_->session.has_failed_alone()) state_->session.leave_ranks();
    throw_error<OutOfMemoryError>({"out of memory", state_->rescue(ExitCode::Memory)});
  } catch (...) {  // of the observer or go_on(): it cannot say where the step is saved
    if (state_->session.has_failed_alone()) state_->session.leave_ranks();
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
  if (ended_at) {
    must_stop_ = false;
    if (end == TrainEnd::Stopped && finish(observer)) end = early ? TrainEnd::Early : TrainEnd::Done;
    return end;
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
      if (due(solver.eval_interval) && !validate_now(observer)) break;
      if (ends_early()) break;
    }
    const bool long_ago =
        step() > 0 && solver.checkpoint_minutes > 0 && seconds_since(saved_time) >= 60 * solver.checkpoint_minutes;
    if ((step() > 0 && take_save_request()) || long_ago) save(observer);
    if (passes_targets()) {
      result.passed_targets = true;
      break;
    }
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
  early = step() < total && ends_early();
  bool done = !must_stop() && validate_now(observer);
  save(observer);  // nothing is removed, unless the folder has disappeared meanwhile
  done = done && finish(observer);
  folder.remove_stale_files();
  end = !done ? TrainEnd::Stopped : early ? TrainEnd::Early : TrainEnd::Done;
  return end;
}

WarmStart Trainer::warm_start(LoadedModel& from) {
  TERCEL_CHECK(step() == 0 && state_->saved_at < 0, RuntimeError, printable(state_->folder.path()),
               ": warm_start: the run has a checkpoint, or has trained");
  Model& model = session().model();
  try {
    if (state_->group != nullptr) message_of_first(*state_->group, {RankCommand::WarmStart, from.checkpoint});
    return recsys::warm_start(model, state_->dataset, from);
  } catch (...) {
    state_->remove_folder();
    throw;
  }
}

Session& Trainer::session() {
  TERCEL_CHECK(state_->session.is_initialized(), RuntimeError,
               "trainer: a stop was requested while the model was initialised");
  return state_->session;
}
Model& Trainer::model() { return session().model(); }
int64_t Trainer::step() const { return state_->step(); }
int64_t Trainer::train_rows() const { return state_->session.train_reader().epoch_rows(); }
std::optional<std::string> Trainer::last_checkpoint() const { return state_->checkpoints.latest(); }
const MetricValues& Trainer::last_metrics() const { return state_->last_metrics; }
const RunResult& Trainer::result() const { return state_->result; }
const RunPlan& Trainer::plan() const { return state_->plan; }
const std::vector<std::string>& Trainer::warnings() const { return state_->warnings; }

void follow_trainer(const ModelConfig& config, const data::Dataset& dataset, distributed::ProcessGroup& group) {
  Session session(plan_run(config, dataset).config, dataset, group, RankCalls::FirstLeads);
  session.initialize();
  for (RankMessage message = session.follow(); message.command == RankCommand::WarmStart; message = session.follow()) {
    LoadedModel from = load_model(message.text);
    try {
      warm_start(session.model(), dataset, from);
    } catch (const ConfigError&) {  // rank 0 has it, too
    }
  }
}

}  // namespace tercel::recsys
