#include "tercel/recsys/run_plan.h"

#include <algorithm>
#include <cmath>

#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

RunPlan plan_run(const ModelConfig& config, const data::Dataset& dataset) {
  RunPlan plan{config, {}};
  SolverOptions& solver = plan.config.solver;
  Validation& validation = plan.config.data.validation;
  const int64_t valid_rows = dataset.valid.rows(), train_rows = dataset.train.rows();
  if (validation == Validation::Auto)
    validation = valid_rows > 0                       ? Validation::Part
                 : train_rows >= kFewestRowsToHoldOut ? Validation::HeldOut
                                                      : Validation::None;
  switch (validation) {
    case Validation::Part:
      TERCEL_CHECK(valid_rows > 0, ConfigError, "data: validation is part, but ", dataset.name(),
                   " has no validation part");
      plan.validation = str_cat({"validated on the ", format_count(valid_rows), " rows of the validation part"});
      break;
    case Validation::HeldOut:
      plan.validation =
          str_cat({"validated on one of ", plan.config.data.hold_out, " train rows, held out from training"});
      break;
    case Validation::None:
    case Validation::Auto: plan.validation = "not validated: the last model is taken"; break;
  }
  const bool has_end = solver.epochs > 0 || solver.max_iter > 0, validates = validation != Validation::None;
  TERCEL_CHECK(validates || solver.early_stop <= 0, ConfigError, "solver: early_stop is ", solver.early_stop,
               ", but there are no validation rows (data.validation is none",
               config.data.validation == Validation::Auto ? ", as there are few rows)" : ")");
  TERCEL_CHECK(validates || solver.targets.empty(), ConfigError,
               "solver: targets: expected validation rows, which pass them, found none");
  const auto has = [&solver](std::string_view name) {
    return std::find(solver.metrics.begin(), solver.metrics.end(), name) != solver.metrics.end();
  };
  TERCEL_CHECK(
      !validates || has("auc") || has("log_loss"), ConfigError,
      "solver: metrics: expected auc or log_loss among them, by which validation compares models, found neither");
  if (solver.early_stop < 0) solver.early_stop = validates && !has_end ? kPatience : 0;
  if (!has_end) solver.epochs = validates ? kMostEpochs : 1;
  return plan;
}

Refit plan_refit(const RunPlan& plan, const data::Dataset& dataset, int64_t best_step, int64_t trained_rows) {
  Refit refit{plan.config, dataset};
  TERCEL_CHECK(plan.config.data.validation != Validation::None, ConfigError,
               "refit: the run had no validation rows, so its model was trained on all rows");
  if (plan.config.data.validation == Validation::Part) {
    std::vector<data::DataFile>& files = refit.dataset.train.files;
    files.insert(files.end(), dataset.valid.files.begin(), dataset.valid.files.end());
    refit.dataset.train.file_list.clear();
    refit.dataset.train.truth.reset();
    refit.dataset.valid = {};
  }
  refit.config.data.validation = Validation::None;
  SolverOptions& solver = refit.config.solver;
  solver.early_stop = 0;
  solver.targets.clear();
  solver.epochs = 0;
  const double share = static_cast<double>(refit.dataset.train.rows()) / static_cast<double>(trained_rows);
  solver.max_iter = std::max<int64_t>(1, std::llround(static_cast<double>(best_step) * share));
  return refit;
}

}  // namespace tercel::recsys
