// Evaluation of a model on the rows of a dataset.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/data_identity.h"
#include "tercel/data/dataset.h"
#include "tercel/recsys/metrics/ranking.h"
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

/**
 * What is added to the logits of a model that was trained on rows of which negatives had been left out: ln(w), where w
 * is the share that was kept. It turns a probability p into p / (p + (1 - p) / w), which is right for all rows (He et
 * al., "Practical lessons from predicting clicks on ads at Facebook", 2014).
 */
TERCEL_API double sampling_shift(const data::DataIdentity& trained_on);
/** The same for the rows of a part, of which negatives may have been left out too. */
TERCEL_API double sampling_shift(const data::DataIdentity& trained_on, const data::Dataset& dataset,
                                 data::PartName part);

/**
 * Metrics of a model on the rows that a reader delivers from its position on. Empty if the observer stopped it.
 * `logit_shift` is that of sampling_shift(). With `ranking`, its values follow, of the first head.
 */
TERCEL_API MetricValues evaluate(Model& model, data::BatchReader& reader, RowObserver observer, double logit_shift = 0,
                                 RankingMetrics* ranking = nullptr);
/** The same on a part of a dataset; every row counts once. Warns as warn_of_bad_records(). */
TERCEL_API MetricValues evaluate(Model& model, const data::Dataset& dataset, data::PartName part,
                                 const ModelConfig& config, RowObserver observer, double logit_shift = 0);
/** A warn() with the number of rows that the reader left out and the first of them; none if it left out none. */
TERCEL_API void warn_of_bad_records(const data::BatchReader& reader);
/** The heads' logits, those of LossKind::Binary with a shift; they do not change where it is 0. */
TERCEL_API std::vector<Tensor> shifted(std::vector<Tensor> logits, Span<Head> heads, double logit_shift);

}  // namespace tercel::recsys
