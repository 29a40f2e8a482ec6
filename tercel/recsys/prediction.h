// What a trained model is good for: its measures on a dataset, its probabilities for new rows.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/text_table.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** A model as a run left it. */
struct LoadedModel {
  ModelConfig config;
  data::Dataset dataset;  ///< description of what it was trained on; its folder is the run's
  Model model;
  std::string checkpoint;  ///< folder of the checkpoint that it comes from
  int64_t step = 0;
};

/** Loads the best checkpoint of a run folder, or the given checkpoint folder. DataError if it is no model or damaged.
 */
TERCEL_API LoadedModel load_model(const std::string& path);

/** DataError unless rows of the dataset mean to the model what its train rows meant: dims, slots, vocabulary. */
TERCEL_API void check_dataset_fits(const LoadedModel& model, const data::Dataset& dataset);
/** The same for the description of what the model was trained on. */
TERCEL_API void check_dataset_fits(const data::Dataset& trained_on, const data::Dataset& dataset);

/** Values by name: auc, log_loss, accuracy, calibration. */
using MetricValues = std::vector<std::pair<std::string, double>>;

/** Is told how many rows are done, batch by batch; says whether to go on. */
using RowObserver = FunctionRef<bool(int64_t rows)>;

/** Measures of a model on a part of a dataset; every row counts once. Empty if the observer stopped it. */
TERCEL_API MetricValues evaluate(Model& model, const data::Dataset& dataset, data::PartName part,
                                 const ModelConfig& config, RowObserver observer);

/** Takes the probabilities of a click of consecutive rows. */
using ProbabilitySink = FunctionRef<void(Span<float> probabilities)>;

/** Probabilities for the rows of a part, in order; returns their number. */
TERCEL_API int64_t predict(LoadedModel& model, const data::Dataset& dataset, data::PartName part, ProbabilitySink sink);

/** The same for raw text like that which the model's dataset was converted from, with or without the label's column. */
TERCEL_API int64_t predict_text(LoadedModel& model, std::vector<data::TextSource> sources, ProbabilitySink sink);

}  // namespace tercel::recsys
