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
#include "tercel/recsys/row_ids.h"
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
 * DataError unless the dataset's rows mean what the rows mean that a model was trained on: data::check_same_meaning().
 * Returns a warning if their dense values were standardised by other moments, else nothing.
 */
TERCEL_API std::string check_dataset_fits(const data::DataIdentity& trained_on, const data::Dataset& dataset);

/**
 * The dataset that a run or a checkpoint in it was trained on, to convert further text alike; its folder is the run's,
 * which has the vocabulary. ConfigError if it was not converted from text.
 */
TERCEL_API data::Dataset text_description(const std::string& path);

/**
 * Probabilities [B, Graph::prediction_columns()] of a batch's rows: a column for each head, or for each column or class
 * of one that has several. `logit_shift` is that of sampling_shift(), here and below.
 */
TERCEL_API Tensor predict(Model& model, const data::Batch& batch, double logit_shift = 0);

/**
 * Probabilities [B], or [B, columns] of a model with several, of B rows that are given as arrays, in one pass:
 * Model::make_batch() has names, shapes and errors.
 */
TERCEL_API Tensor predict(Model& model, Span<data::ArrayInput> inputs, double logit_shift = 0);

/** The predictions of consecutive rows. */
struct Predictions {
  int64_t rows = 0;
  Span<float> probabilities = {};  ///< [rows, columns], those of a row together
  data::TableValues ids = {};      ///< one for each row, where ids were asked for
};

/** Receives the predictions of the rows, which are in order. */
using PredictionSink = FunctionRef<void(const Predictions& predictions)>;

/** Predictions for the rows that a reader delivers from its position on; returns their number. */
TERCEL_API int64_t predict(Model& model, data::BatchReader& reader, PredictionSink sink, double logit_shift = 0,
                           RowIds* ids = nullptr);
/**
 * The same for all rows of a part, in order, with their sampling_shift(), of a dataset that check_dataset_fits().
 * DataError for a bad record, whatever data.on_bad_record of the configuration is: a row that is left out would move
 * those behind it. `id` names what RowIds takes; empty: none.
 */
TERCEL_API int64_t predict(Model& model, const ModelConfig& config, const data::DataIdentity& trained_on,
                           const data::Dataset& dataset, data::PartName part, PredictionSink sink,
                           const std::string& id = {});
/** The same with its check; DataError as check_dataset_fits(). */
TERCEL_API int64_t predict(LoadedModel& model, const data::Dataset& dataset, data::PartName part, PredictionSink sink,
                           const std::string& id = {});

/**
 * The same for raw text in the format of the model's training data, with or without the label's column, whose rows are
 * all there are. `id` names a column of the text, or is its number where the text has no header; ids are its texts as
 * they stand there. ConfigError for an id in text of features, which has no columns, DataError for a column that there
 * is not.
 */
TERCEL_API int64_t predict_text(LoadedModel& model, std::vector<data::TextSource> sources, PredictionSink sink,
                                const std::string& id = {});

}  // namespace tercel::recsys
