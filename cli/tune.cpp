#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/model_config.h"
#include "tercel/data/dataset.h"
#include "tercel/recsys/tune.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/signals.h"
#include "tercel/util/warning.h"

namespace tercel::cli {

CommandFunction run_tune;

namespace {

constexpr int64_t kShownTrials = 10;

struct TuneFlags {
  std::string model;
  std::string out;
  recsys::Resume resume = recsys::Resume::Never;
  std::string weight;
  int64_t threads = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&TuneFlags::model>("model", "as for train; default dlrm"),
        option_field<&TuneFlags::out>("out", "folder of the search", required()),
        option_field<&TuneFlags::resume>("resume", "auto: continue the search in --out, if there is one"),
        option_field<&TuneFlags::weight>("weight",
                                         "further column of DATA with the weight of each row, in losses and metrics"),
        option_field<&TuneFlags::threads>("threads", "threads; 0: one for each CPU that may be used", at_least(0),
                                          at_most(1024)));
  }
};

std::string trial_text(const recsys::Trial& trial) {
  char score[32] = "no score";
  if (trial.has_score)  // minus the log loss, or AUC
    std::snprintf(score, sizeof(score), "%s %.4f", trial.score > 0 ? "auc" : "log_loss", std::abs(trial.score));
  std::string text = str_cat({"trial ", trial.number, ": ", score});
  for (const std::string& assignment : trial.assignments) text += "  " + printable(assignment);
  if (trial.assignments.empty()) text += "  (as configured)";
  if (!trial.error.empty()) text += "  ended: " + printable(trial.error);
  return text;
}

/** Prints the progress of a search. */
class Reporter {
 public:
  explicit Reporter(const CommonOptions& common) : common_(common), progress_(std::in_place, common, "tune") {}

  void operator()(const recsys::TuneProgress& now) {
    if (now.training != nullptr) {
      if (now.training->kind != recsys::Progress::Kind::Step) return;
      const double in_trial = static_cast<double>(now.training->step) /
                              static_cast<double>(std::max<int64_t>(1, now.training->total_steps));
      progress_->update((static_cast<double>(now.done) + in_trial) / static_cast<double>(now.of),
                        rows_ + now.training->rows,
                        str_cat({"comparison ", now.rung + 1, " of ", now.rungs, ", trial ", now.trial->number}));
      last_rows_ = now.training->rows;
      return;
    }
    rows_ += std::exchange(last_rows_, 0);
    progress_->clear();
    print_text(common_, str_cat({"after ", format_double(now.epochs),
                                 now.epochs == 1 ? " epoch: " : " epochs: ", trial_text(*now.trial), "\n"}));
  }
  void end() { progress_.reset(); }

 private:
  const CommonOptions& common_;
  std::optional<Progress> progress_;
  int64_t rows_ = 0, last_rows_ = 0;
};

}  // namespace

int run_tune(CommandLine& line) {
  std::string data_path;
  TuneFlags flags;
  recsys::TuneOptions options;
  CommonOptions common;
  std::vector<std::string> assignments, searches;
  line.argument("DATA", "folder of the dataset", data_path);
  line.options(flags);
  line.repeated(
      "--search",
      "SECTION.OPTION=VALUES: a list, log:LOW:HIGH, uniform:LOW:HIGH, int:LOW:HIGH or logint:LOW:HIGH; may be "
      "given several times; default solver.lr=log:0.001:0.1 and solver.batchsize=logint:64:1024",
      searches);
  line.repeated("--set", "SECTION.OPTION=VALUE, as for train, for all trials", assignments);
  line.options(options);
  line.options(common);
  line.example("tercel tune data --model deepfm --search solver.lr=log:0.001:0.1 --out tuned");
  if (!line.parse()) return 0;

  recsys::ModelConfig config = named_config(flags.model.empty() ? "dlrm" : flags.model);
  for (const std::string& assignment : assignments) recsys::set_config(config, assignment);
  if (!flags.weight.empty()) recsys::set_config(config, "data.weight=" + flags.weight, "--weight");
  std::vector<recsys::SearchRange> ranges;
  for (const std::string& search : searches) ranges.push_back(recsys::parse_search(search));
  if (searches.empty()) ranges = recsys::default_search();
  use_threads(flags.threads, common);
  set_warning_handler([common](const std::string& text) { print_warning(common, text); });
  const data::Dataset dataset = data::load_dataset(data_path);
  // Else every trial would end with this error.
  const auto is_weight = [&config](const data::Column& column) { return column.name == config.data.weight; };
  TERCEL_CHECK(config.data.weight.empty() ||
                   std::any_of(dataset.schema.columns.begin(), dataset.schema.columns.end(), is_weight),
               ConfigError, "tune: ", printable(dataset.folder), " has no further column '",
               printable(config.data.weight), "'");

  Reporter reporter(common);
  const recsys::TuneResult result = recsys::tune(config, dataset, ranges, options, flags.out, flags.resume, reporter,
                                                 [] { return stop_signal() == 0; });
  reporter.end();
  const std::string best_config = join_path(flags.out, recsys::kBestTrialFile);
  if (result.stopped) {
    print_text(common, str_cat({"stopped; continue with --resume auto --out ", printable(flags.out), "\n"}));
  } else {
    std::string text = "best trials:\n";
    for (size_t i = 0; i < result.trials.size() && static_cast<int64_t>(i) < kShownTrials; ++i)
      text += "  " + trial_text(result.trials[i]) + "\n";
    if (result.trials.front().has_score)
      text += str_cat(
          {"train the best one with: tercel train ", printable(data_path), " --model ", printable(best_config), "\n"});
    print_text(common, text);
  }
  if (common.json) {
    Json json;
    json["out"] = flags.out;
    json["end"] = result.stopped ? "stopped" : "done";
    if (!result.stopped && result.trials.front().has_score) json["best"] = best_config;
    json["trials"] = Json::array();
    for (const recsys::Trial& trial : result.trials) json["trials"].push_back(write_options(trial));
    print_line(dump_json_line(json));
  }
  if (result.stopped) check_interrupted();
  // The list above has their errors, too.
  TERCEL_CHECK(result.stopped || result.trials.front().has_score, RuntimeError,
               "tune: expected a trial with a score, found none; trial ", result.trials.front().number,
               " ended with: ", result.trials.front().error.empty() ? "no validation" : result.trials.front().error);
  return 0;
}

}  // namespace tercel::cli
