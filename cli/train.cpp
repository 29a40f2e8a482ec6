#include <unistd.h>

#include <array>
#include <cstdio>
#include <optional>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/metric_text.h"
#include "cli/part_summary.h"
#include "tercel/data/dataset.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/trainer.h"
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

struct TrainFlags {
  std::string model;
  std::string out;
  recsys::Resume resume = recsys::Resume::Never;
  bool new_data = false;
  int64_t threads = 0;
  int64_t epochs = 0;
  std::string on_bad_record;
  int64_t max_bad_records = -1;
  bool print_config = false;
  std::string profile;

  static constexpr auto fields() {
    return std::tuple(
        Field{"model", &TrainFlags::model,
              "wdl, deepfm, dcn, dlrm, or a configuration file in JSON; default dlrm, or the run's with --resume"},
        Field{"out", &TrainFlags::out, "folder of the run; default runs/MODEL-N with the first N that is free"},
        Field{"resume", &TrainFlags::resume, "auto: continue from the last checkpoint in --out, if there is one"},
        Field{
            "new_data", &TrainFlags::new_data,
            "with --resume auto: continue although DATA has other rows than the checkpoint's, from the first of them"},
        Field{"threads", &TrainFlags::threads, "threads; 0: one for each CPU that may be used", at_least(0),
              at_most(1024)},
        Field{"epochs", &TrainFlags::epochs, "times to go over the train rows; 0: as configured", at_least(0)},
        Field{"on_bad_record", &TrainFlags::on_bad_record, "fail|skip: at a bad record, fail or leave out the row"},
        Field{"max_bad_records", &TrainFlags::max_bad_records, "rows that may be left out; -1: as configured",
              at_least(-1)},
        Field{"profile", &TrainFlags::profile,
              "file for a trace of where time goes, in Chrome's format, with a table of it at the end; contains the "
              "first "
              "million ranges"},
        Field{"print_config", &TrainFlags::print_config, "print the configuration, with --set applied, and stop"});
  }
};

constexpr int64_t kMaxConfigBytes = int64_t{16} << 20;

recsys::ModelConfig named_config(const std::string& model) {
  const bool is_file = model.find('/') != std::string::npos || model.ends_with(".json");
  return is_file ? recsys::parse_config(read_file(model, kMaxConfigBytes), model)
                 : recsys::parse_config(recsys::preset(model), model);
}

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

recsys::ModelConfig read_config(const TrainFlags& flags, const std::vector<std::string>& assignments,
                                const CommonOptions& common) {
  std::optional<recsys::ModelConfig> previous;
  if (flags.model.empty() && flags.resume == recsys::Resume::Auto) previous = config_of_run(flags.out, common);
  recsys::ModelConfig config =
      previous ? *std::move(previous) : named_config(flags.model.empty() ? "dlrm" : flags.model);
  if (config.model_name.empty()) config.model_name = "model";
  for (const std::string& assignment : assignments) recsys::set_config(config, assignment);
  if (flags.epochs > 0) config.solver.epochs = flags.epochs;
  if (!flags.on_bad_record.empty())
    config.data.on_bad_record = parse_enum_or_throw<data::OnBadRecord>("value of --on-bad-record", flags.on_bad_record);
  if (flags.max_bad_records >= 0) config.data.max_bad_records = flags.max_bad_records;
  return config;
}

/** "runs/dlrm-1", or the first unused number: a folder of its own, so that no other process takes the same one. */
class NumberedFolder {
 public:
  explicit NumberedFolder(const std::string& model) {
    create_dirs("runs");
    for (int64_t n = 1; path_.empty(); ++n) {
      const std::string folder = join_path("runs", model + "-" + std::to_string(n));
      if (create_new_dir(folder)) path_ = folder;
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
        print_text(common_, str_cat({"step ", format_count(now.step), ": ", metric_text(now.metrics), "\n"}));
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

}  // namespace

int run_train(CommandLine& line) {
  std::string data_path;
  TrainFlags flags;
  CommonOptions common;
  std::vector<std::string> assignments;
  line.optional_argument("DATA", "folder of the dataset; not needed for --print-config", data_path);
  line.options(flags);
  line.repeated("--set",
                "SECTION.OPTION=VALUE, as in solver.lr=0.02 or layers.embedding.sparse_embedding_hparam."
                "embedding_vec_size=32; may be given several times",
                assignments);
  line.options(common);
  line.example("tercel train data --model dlrm --set solver.lr=0.02 --out runs/first");
  if (!line.parse()) return 0;

  const bool resumes = flags.resume == recsys::Resume::Auto;
  TERCEL_CHECK(!resumes || !flags.out.empty(), ConfigError, "train: --resume auto needs --out, the folder of the run");
  TERCEL_CHECK(resumes || !flags.new_data, ConfigError, "train: --new-data needs --resume auto");
  const recsys::ModelConfig config = read_config(flags, assignments, common);
  if (flags.print_config) {
    print_exactly(recsys::to_json(config));
    return 0;
  }
  TERCEL_CHECK(!data_path.empty(), ConfigError, "train: argument DATA is missing; usage: tercel train DATA [options]");
  use_threads(flags.threads, common);
  set_warning_handler([common](const std::string& text) { print_warning(common, text); });
  const data::Dataset dataset = data::load_dataset(data_path);
  std::optional<RunProfile> profile;
  if (!flags.profile.empty()) profile.emplace(flags.profile);
  std::optional<NumberedFolder> numbered;
  if (flags.out.empty()) numbered.emplace(config.model_name);
  const std::string out = numbered ? numbered->path() : flags.out;
  recsys::Trainer trainer(config, dataset, out, flags.resume,
                          flags.new_data ? recsys::NewData::Accept : recsys::NewData::Refuse);
  for (const std::string& warning : trainer.warnings()) print_warning(common, warning);
  const int64_t first_step = trainer.step();
  print_text(common, str_cat({"training ", printable(config.model_name), " on ", format_count(dataset.train.rows()),
                              " rows with ", num_threads(), num_threads() == 1 ? " thread" : " threads", " in ",
                              printable(out), first_step > 0 ? ", from step " + format_count(first_step) : "", "\n"}));

  Reporter reporter(common, first_step);
  if (profile) profile->start();
  const recsys::TrainEnd end = trainer.run(reporter);
  reporter.end();
  if (profile) print_text(common, str_cat({profile->finish(), "trace in ", printable(flags.profile), "\n"}));
  const bool stopped = end == recsys::TrainEnd::Stopped;
  const std::string checkpoint = trainer.last_checkpoint().value_or("");
  const double rate = reporter.seconds() > 0 ? static_cast<double>(reporter.rows()) / reporter.seconds() : 0;
  const int64_t steps = trainer.step() - first_step;
  const std::string what = stopped      ? "stopped after step " + format_count(trainer.step())
                           : steps == 0 ? "nothing left to train after step " + format_count(trainer.step())
                                        : "trained " + format_count(steps) + (steps == 1 ? " step" : " steps");
  const std::string speed =
      steps > 0 ? str_cat({" in ", format_duration(reporter.seconds()), " (", format_short(rate), " samples/s)"}) : "";
  print_text(common, checkpoint.empty() ? std::string("stopped before the first step; nothing is saved\n")
                                        : str_cat({what, speed, "; checkpoint ", printable(checkpoint), "\n"}));
  // Of all epochs, those before a run went on included.
  const bool began = trainer.step() > 0;
  const int64_t bad_records = began ? trainer.session().train_reader().bad_records() : 0;
  if (began) print_bad_records(common, bad_records, trainer.session().train_reader().first_bad_record());
  if (common.json) {
    Json json;
    json["run"] = out;
    json["model"] = config.model_name;
    json["end"] = stopped ? "stopped" : "done";
    json["step"] = trainer.step();
    json["rows"] = reporter.rows();
    json["bad_records"] = bad_records;
    json["seconds"] = reporter.seconds();
    json["samples_per_second"] = rate;
    json["checkpoint"] = checkpoint;
    add_metrics(json, trainer.last_metrics());
    print_line(dump_json_line(json));
  }
  if (stopped) check_interrupted();
  return 0;
}

}  // namespace tercel::cli
