// What a trained model is good for: its measures on a dataset, its probabilities for new rows.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tercel/data/data_identity.h"
#include "tercel/data/dataset.h"
#include "tercel/data/text_table.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** A model as a run left it. */
struct LoadedModel {
  ModelConfig config;       ///< the checkpoint's own
  data::DataIdentity data;  ///< of what it was trained on
  std::string run;          ///< folder of the run, which has what raw text needs
  Model model;
  std::string checkpoint;  ///< folder of the checkpoint that it comes from
  int64_t step = 0;
  std::vector<std::string> warnings;  ///< about damaged checkpoints that were passed over
};

/**
 * Opens the best whole checkpoint of a run folder, or the given checkpoint folder. DataError if there is none or the
 * given one is damaged; warnings name damaged ones that were passed over.
 */
TERCEL_API Checkpoint open_model(const std::string& path, Verify verify, std::vector<std::string>& warnings);

/** Loads what open_model() finds: the model that the checkpoint says, its tables where they lie in their files. */
TERCEL_API LoadedModel load_model(const std::string& path);

/** DataError unless rows of the dataset mean to the model what its train rows meant: dims, slots, vocabulary. */
TERCEL_API void check_dataset_fits(const LoadedModel& model, const data::Dataset& dataset);

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
