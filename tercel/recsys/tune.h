// Search for good options of a configuration, by validation and successive halving.
//
// Note [Successive halving]
// As in Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization" (2016): all
// trials are trained for a few rows, the best third goes on, trained three times as long, and so on; the last ones are
// trained until validation stops improving, at most TuneOptions::epochs. A trial goes on from its checkpoint. Trials
// are compared by their best validation so far, Evaluation::score(); the test part is not read.
//
// What is done is in tune.json in the folder, written after each run of a trial, and a run that was stopped has its
// checkpoint: a search that is resumed gives what an uninterrupted one gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/recsys/evaluate.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/search_space.h"
#include "tercel/recsys/trainer.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

struct TuneOptions {
  int64_t trials = 18;
  double epochs = 10;
  double first_epochs = 0.5;
  int64_t reduction = 3;
  uint64_t seed = 1;

  static constexpr auto fields() {
    return option_list(
        option_field<&TuneOptions::trials>("trials", "configurations to try; the first is the one that is given",
                                           at_least(1), at_most(100'000)),
        option_field<&TuneOptions::epochs>("epochs", "most passes over the train rows of a trial", above(0),
                                           at_most(10'000)),
        option_field<&TuneOptions::first_epochs>("first_epochs", "passes of each trial before the first comparison",
                                                 above(0), at_most(10'000)),
        option_field<&TuneOptions::reduction>(
            "reduction", "after a comparison one of so many trials goes on, for so many times as long", at_least(2),
            at_most(100)),
        option_field<&TuneOptions::seed>("seed", "of the choice of values"));
  }
};

/** A configuration that is tried. */
struct Trial {
  int64_t number = 0;
  std::vector<std::string> assignments;  ///< what it changes
  int64_t rung = -1;                     ///< the last comparison that it has been trained for; -1: none
  bool has_score = false;                ///< false: no validation was possible, or an error ended it
  double score = 0;                      ///< of its best validation: Evaluation::score(), minus the log loss
  int64_t best_step = 0, steps = 0;
  std::string error;  ///< that ended it

  static constexpr auto fields() {
    return option_list(option_field<&Trial::number>("number", "of the trial, from 0", at_least(0), required()),
                       option_field<&Trial::assignments>("assignments", "what it changes"),
                       option_field<&Trial::rung>("rung", "the last comparison it was trained for", at_least(-1)),
                       option_field<&Trial::has_score>("has_score", "whether it was validated"),
                       option_field<&Trial::score>("score", "of its best validation"),
                       option_field<&Trial::best_step>("best_step", "of that validation", at_least(0)),
                       option_field<&Trial::steps>("steps", "that were trained", at_least(0)),
                       option_field<&Trial::error>("error", "that ended it"));
  }
};

/** Progress of a search, after each run of a trial. */
struct TuneProgress {
  int64_t rung = 0, rungs = 0;         ///< the comparison that trials are trained for, and how many there are
  int64_t done = 0, of = 0;            ///< trials trained for it
  double epochs = 0;                   ///< passes until it
  const Trial* trial = nullptr;        ///< the last one
  const Progress* training = nullptr;  ///< null after the run of a trial
};
using TuneObserver = FunctionRef<void(const TuneProgress&)>;

struct TuneResult {
  std::vector<Trial> trials;  ///< the best first, of those that were trained longest
  bool stopped = false;
};

/** The configuration of the best trial, in the folder of a search that is done. */
constexpr const char* kBestTrialFile = "best.json";

/** What matters most for every model: solver.lr and solver.batchsize. */
TERCEL_API std::vector<SearchRange> default_search();

/**
 * Searches in a folder, which must be new or, with Resume::Auto, that of the same search: its trials are the runs
 * trial-0, trial-1 and so on, and its best configuration is best.json. ConfigError for options or ranges that no
 * configuration has, for a dataset without validation rows, and for another search than that in the folder; IoError
 * while another process searches in it; errors of Trainer otherwise. NumericError and ConfigError of a single trial end
 * only that. A stop is requested as for Trainer.
 */
TERCEL_API TuneResult tune(const ModelConfig& config, const data::Dataset& dataset, Span<SearchRange> ranges,
                           const TuneOptions& options, const std::string& folder, Resume resume, TuneObserver observer,
                           FunctionRef<bool()> go_on);

}  // namespace tercel::recsys
