// Models loaded from runs, and their predictions for new rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/data/array_inputs.h"
#include "tercel/data/data_identity.h"
#include "tercel/data/dataset.h"
#include "tercel/data/text_table.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** A model loaded from a run. */
struct LoadedModel {
  ModelConfig config;       ///< the checkpoint's own
  data::DataIdentity data;  ///< of its training data
  std::string run;          ///< folder of the run, with the vocabulary for raw text
  Model model;
  std::string checkpoint;  ///< folder of the checkpoint that it comes from
  int64_t step = 0;
  int64_t last_step = 0;  ///< of the run's last checkpoint, intact or not; `step` if a checkpoint was given
  std::vector<std::string> warnings = {};  ///< about damaged checkpoints that were skipped
};

/** Whether a folder is that of a run or of a checkpoint. */
TERCEL_API bool is_model_folder(const std::string& path);

/**
 * Opens the best whole checkpoint of a run folder, or the given checkpoint folder. DataError if there is none or the
 * given one is damaged; warnings name damaged ones that were skipped.
 */
TERCEL_API Checkpoint open_model(const std::string& path, Verify verify, std::vector<std::string>& warnings);

/** Loads the checkpoint that open_model() finds, with its own configuration and dtype; maps its tables. */
TERCEL_API LoadedModel load_model(const std::string& path);

/**
 * DataError unless the dataset's rows mean what the model's train rows mean: data::check_same_meaning(). Returns a
 * warning if their dense values were standardised by other moments, else nothing.
 */
TERCEL_API std::string check_dataset_fits(const LoadedModel& model, const data::Dataset& dataset);

/** Receives the click probabilities of consecutive rows [rows, heads], those of a row together. */
using ProbabilitySink = FunctionRef<void(Span<float> probabilities)>;

/** Probabilities for the rows of a part, in order; returns their number. */
TERCEL_API int64_t predict(LoadedModel& model, const data::Dataset& dataset, data::PartName part, ProbabilitySink sink);

/** The same for raw text in the format of the model's training data, with or without the label's column. */
TERCEL_API int64_t predict_text(LoadedModel& model, std::vector<data::TextSource> sources, ProbabilitySink sink);

/**
 * Probabilities [B], or [B, heads] of a model with several heads, of B rows that are given as arrays, in one pass; they
 * have the model's dtype.
 * Inputs are named by tensors of the Data layer or by slots of the schema: data::batch_from_arrays() has shapes and
 * errors.
 */
TERCEL_API Tensor predict(LoadedModel& model, Span<data::ArrayInput> inputs);

}  // namespace tercel::recsys
