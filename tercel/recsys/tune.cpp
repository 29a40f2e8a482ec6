#include "tercel/recsys/tune.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tercel/recsys/model/config_impl.h"
#include "tercel/recsys/run_plan.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/options_impl.h"

namespace tercel::recsys {

namespace {

constexpr std::string_view kStateFile = "tune.json", kLockFile = "lock";
constexpr int64_t kMaxStateBytes = int64_t{1} << 30;

/** Passes until each comparison; the last one is the end of trials. */
std::vector<double> rung_epochs(const TuneOptions& options) {
  std::vector<double> rungs;
  for (double epochs = options.first_epochs; epochs < options.epochs; epochs *= static_cast<double>(options.reduction))
    rungs.push_back(epochs);
  rungs.push_back(options.epochs);
  return rungs;
}

/** Better ones first: those trained for a later comparison, then by score; equal ones by number. */
bool is_better(const Trial& a, const Trial& b) {
  if (a.has_score != b.has_score) return a.has_score;
  if (a.rung != b.rung) return a.rung > b.rung;
  if (a.score != b.score) return a.score > b.score;
  return a.number < b.number;
}

/** Whether a folder has nothing but what a search leaves that was stopped before it had saved its state. */
bool holds_nothing(const std::string& folder) {
  const std::vector<std::string> names = list_dir(folder);
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with(kLockFile) || name.starts_with(str_cat({kStateFile, ".tmp-"}));
  });
}

class Search {
 public:
  Search(const ModelConfig& config, const data::Dataset& dataset, Span<SearchRange> ranges, const TuneOptions& options,
         const std::string& folder, Resume resume)
      : config_(config), dataset_(dataset), options_(options), folder_(folder), rungs_(rung_epochs(options)) {
    check_options(options, "tune");
    dataset_.test = {};  // is not to be read
    TERCEL_CHECK(plan_run(config, dataset_).config.data.validation != Validation::None, ConfigError,
                 "tune: expected validation rows, found none");
    for (int64_t i = 0; i < options.trials; ++i) {
      trials_.emplace_back();
      trials_.back().number = i;
      trials_.back().assignments = draw_trial(ranges, options.seed, i);
    }
    // Mistakes are reported before anything is trained.
    if (!ranges.empty() && options.trials > 1) static_cast<void>(Model(config_of(trials_[1]), dataset.schema));
    identity_ = {{"config", config_to_json(config)},
                 {"options", write_options(options)},
                 {"first", options.trials > 1 ? Json(trials_[1].assignments) : Json::array()},
                 {"rows", data::digest_of(data::identity_of(dataset_), data::PartName::Train)}};
    open(resume);
  }

  TuneResult run(TuneObserver observer, FunctionRef<bool()> go_on) {
    TuneResult result;
    std::vector<Trial*> left;
    for (Trial& trial : trials_) left.push_back(&trial);
    for (int64_t rung = 0; rung < num_rungs() && !result.stopped; ++rung) {
      int64_t done = 0;
      for (Trial* trial : left) {
        if (trial->rung < rung && trial->error.empty()) {
          const auto report = [&](const Progress* training) {
            observer({rung, num_rungs(), done, static_cast<int64_t>(left.size()), rungs_[static_cast<size_t>(rung)],
                      trial, training});
          };
          if (!train(
                  *trial, rung, [&](const Progress& now) { report(&now); }, go_on)) {
            result.stopped = true;
            break;
          }
          save();
          ++done;
          report(nullptr);
        } else {
          ++done;
        }
      }
      if (rung + 1 == num_rungs() || result.stopped) break;
      // Those that went on before a search was stopped go on again, whatever became of them.
      std::sort(left.begin(), left.end(), [rung](const Trial* a, const Trial* b) {
        if ((a->rung > rung) != (b->rung > rung)) return a->rung > rung;
        return is_better(*a, *b);
      });
      const size_t go = std::max<size_t>(1, left.size() / static_cast<size_t>(options_.reduction));
      for (size_t i = go; i < left.size(); ++i) remove_checkpoints(*left[i]);
      left.resize(std::min(left.size(), go));
      std::sort(left.begin(), left.end(), [](const Trial* a, const Trial* b) { return a->number < b->number; });
    }
    result.trials = trials_;
    std::sort(result.trials.begin(), result.trials.end(), is_better);
    if (!result.stopped && result.trials.front().has_score)
      write_file_atomically(join_path(folder_, kBestTrialFile), to_json(config_of(result.trials.front())));
    return result;
  }

 private:
  int64_t num_rungs() const { return static_cast<int64_t>(rungs_.size()); }

  ModelConfig config_of(const Trial& trial) const {
    ModelConfig config = config_;
    for (const std::string& assignment : trial.assignments) set_config(config, assignment, "--search");
    return config;
  }

  std::string folder_of(const Trial& trial) const {
    return join_path(folder_, "trial-" + std::to_string(trial.number));
  }

  /** Of a trial that does not go on: tables may be large. */
  void remove_checkpoints(const Trial& trial) const {
    const std::string checkpoints = join_path(folder_of(trial), "checkpoints");
    if (exists(checkpoints)) remove_tree(checkpoints);
  }

  void open(Resume resume) {
    const std::string path = join_path(folder_, std::string(kStateFile));
    TERCEL_CHECK(exists(path) || !exists(folder_) || holds_nothing(folder_), ConfigError, printable(folder_),
                 ": expected a new folder or that of a search, found one without ", kStateFile);
    create_dirs(folder_);
    lock_.emplace(join_path(folder_, std::string(kLockFile)));
    remove_stale_temporaries(folder_);
    if (!exists(path)) return save();
    TERCEL_CHECK(resume == Resume::Auto, ConfigError, printable(folder_),
                 ": already contains a search; continue it with --resume auto, or choose another folder");
    const Json json = parse_json(read_file(path, kMaxStateBytes), path, JsonErrors::Data);
    TERCEL_CHECK(json.is_object() && json.contains("search") && json.contains("trials") && json["trials"].is_array(),
                 DataError, printable(path), ": expected an object with 'search' and 'trials'");
    for (const auto& [key, value] : identity_.items())
      TERCEL_CHECK(json["search"].contains(key) && json["search"][key] == value, ConfigError, printable(folder_),
                   ": contains another search: its ", key == "first" ? "ranges" : key, " differ from these");
    TERCEL_CHECK(json["trials"].size() == trials_.size(), DataError, printable(path), ": expected ", trials_.size(),
                 " trials, found ", json["trials"].size());
    for (size_t i = 0; i < trials_.size(); ++i) {
      Trial read;
      try {
        read_options(json["trials"][i], read, path);
      } catch (const ConfigError& e) {
        throw DataError(e.what());
      }
      TERCEL_CHECK(
          read.number == trials_[i].number && read.assignments == trials_[i].assignments && read.rung < num_rungs(),
          DataError, printable(path), ": trial ", i, " is not that of the search");
      trials_[i] = std::move(read);
    }
  }

  void save() const {
    Json trials = Json::array();
    for (const Trial& trial : trials_) trials.push_back(write_options(trial));
    write_file_atomically(join_path(folder_, std::string(kStateFile)),
                          dump_json({{"search", identity_}, {"trials", trials}}) + "\n");
  }

  /** Trains a trial until a comparison; false if a stop was requested. */
  bool train(Trial& trial, int64_t rung, Observer observer, FunctionRef<bool()> go_on) {
    try {
      ModelConfig config = config_of(trial);
      SolverOptions& solver = config.solver;
      if (solver.early_stop < 0) solver.early_stop = kPatience;
      solver.epochs = 0;
      const int64_t rows = Session(plan_run(config, dataset_).config, dataset_).train_reader().epoch_rows();
      const double steps = rungs_[static_cast<size_t>(rung)] * static_cast<double>(rows);
      solver.max_iter = std::max<int64_t>(1, std::llround(steps / static_cast<double>(solver.batchsize)));
      Trainer trainer(config, dataset_, folder_of(trial), Resume::Auto, NewData::Refuse, go_on);
      const RunResult& found = trainer.result();
      try {
        if (trainer.run(observer, go_on) == TrainEnd::Stopped) return false;
      } catch (const NumericError&) {  // a rate that is too high, say
        trial.error = found.error;     // without the checkpoint, which does not stay
        trial.has_score = false;
        trial.rung = rung;
        return true;
      }
      Evaluation evaluation;
      for (const auto& [name, value] : found.valid)
        if (std::isfinite(value)) evaluation.metrics.push_back({name, value});
      const std::optional<double> score = evaluation.score();
      trial.has_score = score.has_value();
      trial.score = score.value_or(0);
      trial.best_step = found.best_step;
      trial.steps = trainer.step();
    } catch (const ConfigError& e) {  // values that exclude each other
      trial.error = e.what();
    }
    if (!trial.error.empty()) trial.has_score = false;
    trial.rung = rung;
    return true;
  }

  ModelConfig config_;
  data::Dataset dataset_;
  TuneOptions options_;
  std::string folder_;
  std::vector<double> rungs_;
  std::vector<Trial> trials_;
  Json identity_;
  std::optional<FileLock> lock_;  // two searches would overwrite each other's trials
};

}  // namespace

std::vector<SearchRange> default_search() {
  return {parse_search("solver.lr=log:0.001:0.1"), parse_search("solver.batchsize=logint:64:1024")};
}

TuneResult tune(const ModelConfig& config, const data::Dataset& dataset, Span<SearchRange> ranges,
                const TuneOptions& options, const std::string& folder, Resume resume, TuneObserver observer,
                FunctionRef<bool()> go_on) {
  return Search(config, dataset, ranges, options, folder, resume).run(observer, go_on);
}

}  // namespace tercel::recsys
