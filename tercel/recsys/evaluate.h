// Evaluation of a model on the rows of a dataset.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/dataset.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/**
 * Values by name: auc, log_loss, accuracy, calibration. Of a model with several heads: auc, the mean of the heads'
 * weighted by their weights (all alike if all weights are 0), then auc/loss1 and so on of each head.
 */
using MetricValues = std::vector<std::pair<std::string, double>>;

/** Called after each batch with the number of rows done; returns whether to continue. */
using RowObserver = FunctionRef<bool(int64_t rows)>;

/** How evaluations and predictions read: once, in batches of solver.batchsize_eval. */
TERCEL_API data::ReaderOptions evaluation_reading(const Model& model, const ModelConfig& config);

/** Metrics of a model on the rows that a reader delivers from its position on. Empty if the observer stopped it. */
TERCEL_API MetricValues evaluate(Model& model, data::BatchReader& reader, RowObserver observer);
/** The same on a part of a dataset; every row counts once. */
TERCEL_API MetricValues evaluate(Model& model, const data::Dataset& dataset, data::PartName part,
                                 const ModelConfig& config, RowObserver observer);

}  // namespace tercel::recsys
