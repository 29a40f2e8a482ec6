// What a run decides itself where its configuration leaves it open: validation rows, epochs, early stopping.
#pragma once

#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/recsys/model/config.h"

namespace tercel::recsys {

/** Datasets with fewer train rows have none held out: an AUC of ten rows chooses nothing. */
constexpr int64_t kFewestRowsToHoldOut = 100;
/** Epochs and validations without a better one after which a run ends that is given neither epochs nor max_iter. */
constexpr int64_t kMostEpochs = 10, kPatience = 2;

struct RunPlan {
  ModelConfig config;      ///< with data.validation, solver.epochs and solver.early_stop decided
  std::string validation;  ///< one line for people: which rows validate
};

/**
 * Decides for the rows of a dataset. Early stopping needs validation rows: ConfigError if it is asked for without, or
 * if data.validation=part and there is no validation part.
 */
TERCEL_API RunPlan plan_run(const ModelConfig& config, const data::Dataset& dataset);

/** A second run on all rows: without validation, for as many steps as the best model needed of fewer rows. */
struct Refit {
  ModelConfig config;
  data::Dataset dataset;  ///< its train part has the rows of the validation part too
};
/**
 * The refit of a run, planned by plan_run(), whose best model was that after `best_step` steps on `trained_rows` rows
 * an epoch. ConfigError if the run had no validation rows: its model was trained on all of them.
 */
TERCEL_API Refit plan_refit(const RunPlan& plan, const data::Dataset& dataset, int64_t best_step, int64_t trained_rows);

}  // namespace tercel::recsys
