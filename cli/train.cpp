#include <unistd.h>

#include <array>
#include <cstdio>
#include <optional>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/metric_text.h"
#include "cli/model_config.h"
#include "cli/part_summary.h"
#include "cli/ranks.h"
#include "tercel/data/dataset.h"
#include "tercel/distributed/error.h"
#include "tercel/distributed/mpi_transport.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/recsys/placement_plan.h"
#include "tercel/recsys/prediction.h"
#include "tercel/recsys/ranks.h"
#include "tercel/recsys/report/table_growth.h"
#include "tercel/recsys/table_placements.h"
#include "tercel/recsys/trainer.h"
#include "tercel/recsys/warm_start.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"
#include "tercel/util/signals.h"
#include "tercel/util/warning.h"

namespace tercel::cli {

CommandFunction run_train;

namespace {

constexpr const char* kDefaultModel = "dlrm";

struct TrainFlags {
  std::string model;
  std::string out;
  recsys::Resume resume = recsys::Resume::Never;
  bool new_data = false;
  std::string init_from;
  bool refit = false;
  int64_t threads = 0;
  int64_t ranks = 0;
  int64_t restarts = 0;
  bool tensorboard = false;
  bool print_config = false;
  std::string profile;

  static constexpr auto fields() {
    return option_list(
        option_field<&TrainFlags::model>(
            "model",
            "a shipped model (lr, fm, ffm, wdl, deepfm, dcn, dcnv2, dlrm, dlrm_dcnv2, xdeepfm, autoint, finalmlp, "
            "neumf, mmoe, din, bst), or a configuration file in JSON; default dlrm, or the run's with --resume"),
        option_field<&TrainFlags::out>("out", "folder of the run; default runs/MODEL-N with the first N that is free"),
        option_field<&TrainFlags::resume>("resume",
                                          "auto: continue from the last checkpoint in --out, if there is one"),
        option_field<&TrainFlags::new_data>(
            "new_data",
            "with --resume auto: continue although DATA has other rows than the checkpoint's, from the first of them"),
        option_field<&TrainFlags::threads>("threads", "threads; 0: one for each CPU that may be used", at_least(0),
                                           at_most(1024)),
        option_field<&TrainFlags::ranks>(
            "ranks",
            "processes of this machine, started by mpirun, that each train a part of every batch; 0: those that mpirun "
            "or srun has started, or one",
            at_least(0), at_most(1024)),
        option_field<&TrainFlags::restarts>(
            "restarts",
            "with --ranks: start a job that lost a process again, at most so many times, from its last checkpoint",
            at_least(0), at_most(1'000'000)),
        option_field<&TrainFlags::init_from>(
            "init_from",
            "a run or checkpoint whose weights a new run begins with, also on other data: rows of the tables belong "
            "together by their categories"),
        option_field<&TrainFlags::refit>(
            "refit",
            "afterwards train on all rows, those of validation too, for as many passes as the best model needed; "
            "that model is in --out, and the first run in OUT-selection"),
        option_field<&TrainFlags::tensorboard>("tensorboard",
                                               "write a file of events for TensorBoard into the run's folder"),
        option_field<&TrainFlags::profile>(
            "profile",
            "file for a trace of where time goes, in Chrome's format, with a table of it at the end; contains the "
            "first million ranges"),
        option_field<&TrainFlags::print_config>("print_config",
                                                "print the configuration, with --set applied, and stop"));
  }
};

/** Flags that are short for --set; empty: not given. */
struct ConfigFlags {
  std::string epochs, early_stop, batch_size, lr, optimizer, seed, validation, weight, on_nan, clip_grad_norm,
      on_bad_record, max_bad_records;

  static constexpr auto fields() {
    return option_list(
        option_field<&ConfigFlags::epochs>(
            "epochs",
            "passes over the train rows; by default a run ends when validations find no better model any more"),
        option_field<&ConfigFlags::early_stop>(
            "early_stop",
            "end after so many validations without a better one, 0: never; default 2 without --epochs, else 0"),
        option_field<&ConfigFlags::batch_size>("batch_size", "rows of a step"),
        option_field<&ConfigFlags::lr>("lr", "learning rate"),
        option_field<&ConfigFlags::optimizer>(
            "optimizer", "SGD, MomentumSGD, Nesterov, Adam, AdamW, AdaGrad, RowWiseAdaGrad, RMSProp or Ftrl"),
        option_field<&ConfigFlags::seed>("seed", "of initial values, dropout and the order of rows"),
        option_field<&ConfigFlags::validation>(
            "validation",
            "auto|part|held_out|none: rows that choose the best model; default the validation part of DATA, else every "
            "tenth train row"),
        option_field<&ConfigFlags::weight>("weight",
                                           "further column of DATA with the weight of each row, in losses and metrics"),
        option_field<&ConfigFlags::on_nan>(
            "on_nan", "stop|skip: at a loss or gradients that are not finite, stop or pass over the batch"),
        option_field<&ConfigFlags::clip_grad_norm>("clip_grad_norm",
                                                   "largest norm of all gradients, which are scaled down to it"),
        option_field<&ConfigFlags::on_bad_record>("on_bad_record",
                                                  "fail|skip: at a bad record, fail or leave out the row"),
        option_field<&ConfigFlags::max_bad_records>("max_bad_records", "rows that may be left out"));
  }

  void apply(recsys::ModelConfig& config) const {
    const std::tuple<std::string_view, std::string_view, const std::string&> all[] = {
        {"--epochs", "solver.epochs", epochs},
        {"--early-stop", "solver.early_stop", early_stop},
        {"--batch-size", "solver.batchsize", batch_size},
        {"--lr", "solver.lr", lr},
        {"--optimizer", "optimizer.type", optimizer},
        {"--seed", "solver.seed", seed},
        {"--validation", "data.validation", validation},
        {"--weight", "data.weight", weight},
        {"--on-nan", "solver.on_nan", on_nan},
        {"--clip-grad-norm", "solver.clip_grad_norm", clip_grad_norm},
        {"--on-bad-record", "data.on_bad_record", on_bad_record},
        {"--max-bad-records", "data.max_bad_records", max_bad_records}};
    for (const auto& [flag, entry, value] : all)
      if (!value.empty()) recsys::set_config(config, str_cat({entry, "=", value}), flag);
  }
};

/**
 * The configuration of a run that goes on: its config.json, or the last checkpoint's if that file is missing or no JSON
 * (cut short, say). None in a folder without a run.
 */
std::optional<recsys::ModelConfig> config_of_run(const std::string& run, const CommonOptions& common) {
  const std::string path = join_path(run, "config.json");
  std::string problem = printable(path) + ": is missing";
  if (exists(path)) {
    const std::string text = read_file(path, kMaxConfigBytes);
    try {
      static_cast<void>(parse_json(text, path, JsonErrors::Data));
      return recsys::parse_config(text, path);
    } catch (const DataError& e) {
      problem = e.what();
    }
  }
  std::vector<std::string> passed_over;  // the trainer names them
  const auto checkpoint =
      recsys::open_checkpoint(join_path(run, "checkpoints"), recsys::Which::Last, recsys::Verify::Sizes, passed_over);
  if (!checkpoint) {
    TERCEL_CHECK(!exists(path), DataError, problem);
    return std::nullopt;
  }
  print_warning(common, str_cat({problem, "; the configuration of ", printable(checkpoint->folder()), " is used"}));
  return checkpoint->identity().config;
}

/** Folder of the first of the two runs of --refit. */
std::string selection_of(const std::string& out) { return out + "-selection"; }

recsys::ModelConfig read_config(const TrainFlags& flags, const ConfigFlags& entries,
                                const std::vector<std::string>& assignments, const CommonOptions& common) {
  std::optional<recsys::ModelConfig> previous;
  if (flags.model.empty() && flags.resume == recsys::Resume::Auto)
    previous = config_of_run(flags.refit ? selection_of(flags.out) : flags.out, common);
  recsys::ModelConfig config =
      previous ? *std::move(previous) : named_config(flags.model.empty() ? kDefaultModel : flags.model);
  if (config.model_name.empty()) config.model_name = "model";
  for (const std::string& assignment : assignments) recsys::set_config(config, assignment);
  entries.apply(config);
  if (flags.tensorboard) config.solver.tensorboard = true;
  return config;
}

/** "runs/dlrm-1", or the first unused number: a folder of its own, so that no other process takes the same one. */
class NumberedFolder {
 public:
  explicit NumberedFolder(const std::string& model) {
    create_dirs("runs");
    for (int64_t n = 1; path_.empty(); ++n) {
      const std::string folder = join_path("runs", model + "-" + std::to_string(n));
      if (!exists(selection_of(folder)) && create_new_dir(folder)) path_ = folder;
    }
  }
  /** Removes the folder if nothing is in it. */
  ~NumberedFolder() { ::rmdir(path_.c_str()); }
  NumberedFolder(const NumberedFolder&) = delete;
  NumberedFolder& operator=(const NumberedFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string loss_note(const recsys::Progress& now) {
  char text[64];
  std::snprintf(text, sizeof(text), "loss %.4f", now.loss);
  return text;
}

/** Prints the progress of a run. */
class Reporter {
 public:
  Reporter(const CommonOptions& common, int64_t first_step) : common_(common), first_step_(first_step) {
    progress_.emplace(common_, "train");
  }

  void operator()(const recsys::Progress& now) {
    const double share = static_cast<double>(now.step - first_step_) /
                         static_cast<double>(std::max<int64_t>(1, now.total_steps - first_step_));
    switch (now.kind) {
      case recsys::Progress::Kind::Step:
        progress_->update(share, now.rows, loss_note(now));
        rows_ = now.rows;
        seconds_ = now.seconds;
        break;
      case recsys::Progress::Kind::Evaluation:
        progress_->clear();
        print_text(common_, str_cat({"step ", format_count(now.step), ": ", to_string(now.part), " ",
                                     metric_text(now.metrics), "\n"}));
        break;
      case recsys::Progress::Kind::Checkpoint: break;
    }
  }
  void end() { progress_.reset(); }

  int64_t rows() const { return rows_; }
  double seconds() const { return seconds_; }

 private:
  const CommonOptions& common_;
  int64_t first_step_;
  std::optional<Progress> progress_;
  int64_t rows_ = 0;
  double seconds_ = 0;
};

/** Profiles the run: writes a trace file and returns a table. */
class RunProfile {
 public:
  /** Opens the file, so that an invalid path is an error before the run begins. */
  explicit RunProfile(const std::string& path) : file_(path) {}
  ~RunProfile() {
    if (started_) stop_profile();  // an error ended the run
  }
  RunProfile(const RunProfile&) = delete;
  RunProfile& operator=(const RunProfile&) = delete;

  void start() {
    start_profile(/*max_events=*/1'000'000);
    started_ = true;
  }
  /** Writes the trace; returns the table. */
  std::string finish() {
    started_ = false;
    const std::vector<ProfileEvent> events = stop_profile();
    file_.write(chrome_trace(events));
    file_.commit();
    return profile_table(events, /*most_rows=*/20);
  }

 private:
  AtomicFile file_;
  bool started_ = false;
};

struct RunOutcome {
  Json json;
  bool stopped = false;
  int64_t best_step = 0, train_rows = 0;  // unless it was stopped
};

/** "best: step 750 of 1,000, valid auc 0.7871, test auc 0.7850"; empty without validation and test rows. */
std::string result_text(const recsys::RunResult& result, int64_t steps) {
  std::string text;
  const auto add = [&text](data::PartName part, const recsys::MetricValues& metrics) {
    if (!metrics.empty()) text += str_cat({"  ", to_string(part), ": ", metric_text(metrics), "\n"});
  };
  add(data::PartName::Valid, result.valid);
  add(data::PartName::Test, result.test);
  if (text.empty()) return text;
  const bool is_best = !result.valid.empty();
  return str_cat({is_best ? "best" : "last", " model, of step ", format_count(result.best_step),
                  is_best ? " of " + format_count(steps) : "", ":\n", text});
}

/** How tables that grow have grown, a line each; their numbers are added to the JSON under the tables' names. */
std::string growth_text(recsys::Session& session, const std::string& run, Json& json) {
  std::string text;
  std::vector<recsys::TableGrowth> saved;  // of tables of which this process has a part
  if (!session.model().embeddings().has_all_rows())
    if (const auto all = recsys::list_checkpoints(join_path(run, "checkpoints")); !all.empty())
      saved = recsys::growth_of(recsys::Checkpoint(all.back(), recsys::Verify::Sizes));
  for (const auto& table : session.model().embeddings().tables()) {
    const auto* const hashed = dynamic_cast<const recsys::HashedTable*>(table.get());
    if (hashed == nullptr) continue;
    recsys::HashedTableStatistics s = hashed->statistics();
    for (const recsys::TableGrowth& growth : saved)
      if (growth.name == table->name()) s = growth.statistics;
    const int64_t capacity = hashed->options().capacity;
    text += str_cat({"table ", printable(table->name()), ": ", format_count(s.keys), s.keys == 1 ? " key" : " keys",
                     capacity > 0 ? " of at most " + format_count(capacity) : ""});
    if (hashed->options().admission > 1)
      text += str_cat({", ", format_count(s.waiting), " seen too rarely for a row, ", format_count(s.refused),
                       " occurrences without one"});
    if (s.forgotten > 0) text += str_cat({", ", format_count(s.forgotten), " forgotten while they waited"});
    if (hashed->evicts()) text += str_cat({", ", format_count(s.evicted), " lost their rows"});
    text += "\n";
    json[table->name()] = {{"keys", s.keys},          {"capacity", capacity}, {"admitted", s.admitted},
                           {"waiting", s.waiting},    {"refused", s.refused}, {"evicted", s.evicted},
                           {"forgotten", s.forgotten}};
  }
  return text;
}

/** Begins with the weights of another run. */
void init_from(recsys::LoadedModel& from, recsys::Trainer& trainer, const CommonOptions& common) {
  for (const std::string& warning : from.warnings) print_warning(common, warning);
  const recsys::WarmStart start = trainer.warm_start(from);
  for (const std::string& warning : start.warnings) print_warning(common, warning);
  std::string text = str_cat({"begins with ", format_count(start.parameters), " dense tensors and ",
                              format_count(start.rows), " rows of tables of ", printable(from.checkpoint), "; ",
                              format_count(start.new_rows), " rows are new\n"});
  for (const std::string& left : start.left) text += "  not taken: " + left + "\n";
  print_text(common, text);
}

/** Tells the other ranks whether rank 0 has failed, where they wait for it. */
bool first_has_failed(distributed::ProcessGroup* group, bool failed) {
  return group == nullptr ? failed : recsys::numbers_of_ranks(*group, failed ? 1 : 0)[0] == 1;
}

/** Does on rank 0 what must succeed before the other ranks, which wait for first_has_failed(), begin. */
void prepare_on_first(distributed::ProcessGroup* group, FunctionRef<void()> work) {
  try {
    work();
  } catch (const Error&) {
    first_has_failed(group, true);
    throw;
  }
  first_has_failed(group, false);
}

/** The model that a run begins with, for rank 0; the others load it when they are told to. */
std::optional<recsys::LoadedModel> load_init_from(const TrainFlags& flags, distributed::ProcessGroup* group) {
  std::optional<recsys::LoadedModel> from;
  if (!flags.init_from.empty()) prepare_on_first(group, [&] { from = recsys::load_model(flags.init_from); });
  return from;
}

/** A run in a folder, from the beginning or resumed. */
RunOutcome train_in(const std::string& out, const recsys::ModelConfig& config, const data::Dataset& dataset,
                    const TrainFlags& flags, const CommonOptions& common, distributed::ProcessGroup* group) {
  std::optional<recsys::LoadedModel> from = load_init_from(flags, group);  // before anything is made
  recsys::Trainer trainer(
      config, dataset, out, flags.resume, flags.new_data ? recsys::NewData::Accept : recsys::NewData::Refuse,
      [] { return true; }, group);
  for (const std::string& warning : trainer.warnings()) print_warning(common, warning);
  const int64_t first_step = trainer.step();
  print_text(common, str_cat({"training ", printable(config.model_name), " on ", format_count(trainer.train_rows()),
                              " rows with ",
                              group != nullptr && group->size() > 1 ? str_cat({group->size(), " ranks of "}) : "",
                              num_threads(), num_threads() == 1 ? " thread" : " threads", " in ", printable(out),
                              first_step > 0 ? ", from step " + format_count(first_step) : "", "\n",
                              trainer.plan().validation, "\n"}));

  if (from && !trainer.last_checkpoint() && stop_signal() == 0) init_from(*from, trainer, common);
  from.reset();
  Reporter reporter(common, first_step);
  const recsys::TrainEnd end = [&] {
    try {
      return trainer.run(reporter);
    } catch (const Error& error) {
      if (group != nullptr && trainer.session().has_failed_alone()) end_job(*group, error.what(), error.exit_code());
      throw;
    }
  }();
  reporter.end();
  RunOutcome outcome;
  outcome.stopped = end == recsys::TrainEnd::Stopped;
  const std::string checkpoint = trainer.last_checkpoint().value_or("");
  const double rate = reporter.seconds() > 0 ? static_cast<double>(reporter.rows()) / reporter.seconds() : 0;
  const int64_t steps = trainer.step() - first_step;
  const std::string what = outcome.stopped ? "stopped after step " + format_count(trainer.step())
                           : steps == 0    ? "nothing left to train after step " + format_count(trainer.step())
                                           : "trained " + format_count(steps) + (steps == 1 ? " step" : " steps");
  const std::string speed =
      steps > 0 ? str_cat({" in ", format_duration(reporter.seconds()), " (", format_short(rate), " samples/s)"}) : "";
  const std::string early = end == recsys::TrainEnd::Early
                                ? str_cat({"; ended early, as ", trainer.plan().config.solver.early_stop,
                                           " validations in turn found no better model"})
                                : "";
  if (trainer.result().passed_targets)
    print_text(common, "the last validation passed solver.targets, which ends the run\n");
  print_text(common, checkpoint.empty() ? std::string("stopped before the first step; nothing is saved\n")
                                        : str_cat({what, speed, early, "; checkpoint ", printable(checkpoint), "\n"}));
  // Of all epochs, those before a run went on included.
  const bool began = trainer.step() > 0;
  const int64_t bad_records = began ? trainer.session().bad_records() : 0;
  if (began) print_bad_records(common, bad_records, trainer.session().first_bad_record());
  const int64_t nan_batches = began ? trainer.session().nan_batches() : 0;
  if (nan_batches > 0) {
    const std::string& first = trainer.session().first_nan_batch();
    print_warning(common, str_cat({"skipped ", nan_batches, nan_batches == 1 ? " batch" : " batches",
                                   " without a finite loss", first.empty() ? "" : "; the first: ", first}));
  }
  if (!outcome.stopped) print_text(common, result_text(trainer.result(), trainer.step()));
  Json& json = outcome.json;
  Json growth;
  if (began) print_text(common, growth_text(trainer.session(), out, growth));
  if (!growth.empty()) json["tables"] = growth;
  json["run"] = out;
  json["model"] = config.model_name;
  json["end"] = trainer.result().passed_targets ? std::string_view("targets") : to_string(end);
  json["step"] = trainer.step();
  json["rows"] = reporter.rows();
  json["bad_records"] = bad_records;
  json["nan_batches"] = nan_batches;
  json["seconds"] = reporter.seconds();
  json["samples_per_second"] = rate;
  json["checkpoint"] = checkpoint;
  if (!outcome.stopped) {
    json["best_step"] = trainer.result().best_step;
    if (!trainer.result().valid.empty()) add_metrics(json["valid"], trainer.result().valid);
    if (!trainer.result().test.empty()) add_metrics(json["test"], trainer.result().test);
    outcome.best_step = trainer.result().best_step;
    outcome.train_rows = trainer.session().train_reader().epoch_rows();
  }
  return outcome;
}

/** The second run of --refit, for all ranks after the first one of rank 0; none if that was stopped. */
std::optional<recsys::Refit> refit_after(const RunOutcome& selection, const recsys::ModelConfig& config,
                                         const data::Dataset& dataset, distributed::ProcessGroup* group) {
  const auto of_first = [group](int64_t number) {
    return group != nullptr ? recsys::numbers_of_ranks(*group, number)[0] : number;
  };
  const int64_t best_step = of_first(selection.stopped ? -1 : selection.best_step);
  const int64_t train_rows = of_first(selection.train_rows);
  if (best_step < 0) return std::nullopt;
  return recsys::plan_refit(recsys::plan_run(config, dataset), dataset, best_step, train_rows);
}

/** ConfigError unless --refit can begin its two runs. */
void check_refit(const std::string& out, const recsys::ModelConfig& config, const data::Dataset& dataset,
                 const TrainFlags& flags) {
  TERCEL_CHECK(recsys::plan_run(config, dataset).config.data.validation != recsys::Validation::None, ConfigError,
               "train: --refit needs validation rows, and there are none: the model is trained on all rows anyway");
  for (const std::string& run : {out, selection_of(out)})
    TERCEL_CHECK(flags.resume == recsys::Resume::Auto || !exists(run) || list_dir(run).empty(), ConfigError,
                 "train: --out ", printable(run),
                 ": already exists; continue it with --resume auto, or choose another folder");
}

/** ConfigError if tables cannot be where the configuration wants them on so many ranks; as Session's. */
void check_placements(const recsys::ModelConfig& config, const data::Dataset& dataset, int64_t ranks) {
  recsys::Model model(recsys::plan_run(config, dataset).config, dataset.schema);
  std::vector<recsys::TableLoad> tables = recsys::table_loads(model);
  recsys::set_given_placements(config.solver.table_placements, ranks, tables);
  recsys::plan_placements(tables, config.solver.placement, ranks, config.solver.batchsize);
}

/** The work of a rank other than 0. */
void follow(const recsys::ModelConfig& config, const data::Dataset& dataset, const TrainFlags& flags,
            distributed::ProcessGroup& group) {
  if (flags.refit && first_has_failed(&group, false)) return;
  const bool waits = !flags.init_from.empty();
  if (waits && first_has_failed(&group, false)) return;
  recsys::follow_trainer(config, dataset, group);
  if (!flags.refit) return;
  const auto refit = refit_after({}, config, dataset, &group);
  if (!refit || (waits && first_has_failed(&group, false))) return;
  recsys::follow_trainer(refit->config, refit->dataset, group);
}

/** A run, or with --refit two, in the folder of the flags. */
RunOutcome train_as(const recsys::ModelConfig& config, const data::Dataset& dataset, const TrainFlags& flags,
                    const CommonOptions& common, distributed::ProcessGroup* group) {
  std::optional<RunProfile> profile;
  if (!flags.profile.empty()) profile.emplace(flags.profile);
  std::optional<NumberedFolder> numbered;
  if (flags.out.empty()) numbered.emplace(config.model_name);
  const std::string out = numbered ? numbered->path() : flags.out;
  if (profile) profile->start();
  RunOutcome outcome;
  if (!flags.refit) {
    outcome = train_in(out, config, dataset, flags, common, group);
  } else {
    prepare_on_first(group, [&] { check_refit(out, config, dataset, flags); });
    const RunOutcome selection = train_in(selection_of(out), config, dataset, flags, common, group);
    outcome = selection;
    if (const auto refit = refit_after(selection, config, dataset, group)) {
      outcome = train_in(out, refit->config, refit->dataset, flags, common, group);
      outcome.json["selection"] = selection.json;
    }
  }
  if (profile) print_text(common, str_cat({profile->finish(), "trace in ", printable(flags.profile), "\n"}));
  return outcome;
}

/** "step 100 of runs/dlrm-1", from where a run goes on. */
std::string progress_of(const std::string& out, const TrainFlags& flags) {
  std::vector<std::string> passed_over;  // the trainer names them
  for (const std::string& run : {out, selection_of(out)}) {
    if (run != out && !flags.refit) break;
    const auto checkpoint =
        recsys::open_checkpoint(join_path(run, "checkpoints"), recsys::Which::Last, recsys::Verify::Sizes, passed_over);
    if (checkpoint) return str_cat({"step ", format_count(checkpoint->info().step), " of ", printable(run)});
  }
  return "the beginning, as there is no checkpoint yet";
}

/** Runs the command as several processes, for --ranks; returns their exit code. */
int train_by_ranks(const CommandLine& line, const TrainFlags& flags, const recsys::ModelConfig& config,
                   const CommonOptions& common) {
  // The first job and those after it are of the same folder and model.
  std::optional<NumberedFolder> numbered;
  if (flags.out.empty()) numbered.emplace(config.model_name);
  const std::string out = numbered ? numbered->path() : flags.out;
  const auto command = [&](const std::vector<std::string>& added, std::vector<std::string_view> dropped) {
    std::vector<std::string> words = {std::string(line.command()), "--out", out};
    words.insert(words.end(), added.begin(), added.end());
    dropped.insert(dropped.end(), {"--ranks", "--threads", "--restarts", "--out"});
    for (std::string& word : without_flags(line.words(), dropped)) words.push_back(std::move(word));
    return words;
  };
  std::vector<std::string> again = {"--resume", "auto"};
  std::vector<std::string_view> dropped = {"--resume"};
  if (flags.resume != recsys::Resume::Auto) {
    again.insert(again.end(), {"--model", flags.model.empty() ? kDefaultModel : flags.model});
    dropped.emplace_back("--model");
  }
  return run_ranks(
      {flags.ranks, flags.threads, command({}, {})}, flags.restarts, command(again, dropped),
      [&] { return progress_of(out, flags); }, common);
}

}  // namespace

int run_train(CommandLine& line) {
  std::string data_path;
  TrainFlags flags;
  ConfigFlags entries;
  CommonOptions common;
  std::vector<std::string> assignments;
  line.optional_argument("DATA", "folder of the dataset; not needed for --print-config", data_path);
  line.options(flags);
  line.options(entries);
  line.repeated("--set",
                "SECTION.OPTION=VALUE, as in solver.lr=0.02 or layers.embedding.sparse_embedding_hparam."
                "embedding_vec_size=32; may be given several times. `tercel config` lists all of them",
                assignments);
  line.options(common);
  line.example("tercel train data --model dlrm --lr 0.02 --out runs/first");
  if (!line.parse()) return 0;

  const bool resumes = flags.resume == recsys::Resume::Auto;
  TERCEL_CHECK(!resumes || !flags.out.empty(), ConfigError, "train: --resume auto needs --out, the folder of the run");
  TERCEL_CHECK(resumes || !flags.new_data, ConfigError, "train: --new-data needs --resume auto");
  const bool starts_ranks = flags.ranks > 1 && !distributed::is_started_by_mpi();
  TERCEL_CHECK(
      starts_ranks || flags.restarts == 0, ConfigError,
      "train: --restarts: expected --ranks, as this command starts only those processes again; mpirun, srun or "
      "an operator restart a job by their own means (Slurm's --requeue, the restartPolicy of an MPIJob), with "
      "--resume auto");
  const recsys::ModelConfig config = read_config(flags, entries, assignments, common);
  if (flags.print_config) {
    print_exactly(recsys::to_json(config));
    return 0;
  }
  TERCEL_CHECK(!data_path.empty(), ConfigError, "train: argument DATA is missing; usage: tercel train DATA [options]");
  if (starts_ranks) {
    // What is wrong is one line here, and one of each process there.
    const data::Dataset dataset = data::load_dataset(data_path);
    check_placements(config, dataset, flags.ranks);
    if (flags.refit && !flags.out.empty()) check_refit(flags.out, config, dataset, flags);
    return train_by_ranks(line, flags, config, common);
  }
  use_threads(flags.threads, common);
  const std::unique_ptr<distributed::ProcessGroup> group = connect_ranks(flags.ranks, common);
  const bool follows = group && group->rank() > 0;
  if (follows) common = {.json = false, .quiet = true};
  set_warning_handler([common](const std::string& text) { print_warning(common, text); });
  RunOutcome outcome;
  const auto train = [&] {
    const data::Dataset dataset = data::load_dataset(data_path);
    if (follows)
      follow(config, dataset, flags, *group);
    else
      outcome = train_as(config, dataset, flags, common, group.get());
  };
  if (group)
    work_with(*group, train);
  else
    train();
  if (follows) return 0;
  if (common.json) print_line(dump_json_line(outcome.json));
  if (outcome.stopped) check_interrupted();
  return 0;
}

}  // namespace tercel::cli
