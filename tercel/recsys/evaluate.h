// Evaluation of a model on the rows of a dataset.
#pragma once

#include <cstdint>

#include "tercel/data/batch_reader.h"
#include "tercel/data/data_identity.h"
#include "tercel/data/dataset.h"
#include "tercel/recsys/evaluator.h"
#include "tercel/recsys/metrics/ranking.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** Called after each batch with the number of rows done, with several ranks those of all; returns whether to continue.
 */
using RowObserver = FunctionRef<bool(int64_t rows)>;

/**
 * How evaluations and predictions read: once, in batches of solver.batchsize_eval, with the columns of solver.group_by,
 * slice_by and data.weight. ConfigError for a slot or column that there is not.
 */
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
 * Measures a model on the rows that a reader delivers from its position on; the reader has evaluation_columns().
 * Without values if the observer stopped it. `logit_shift` is that of sampling_shift(). With `ranking`, its values
 * follow, of the first head. With a group, each rank reads its part of the rows, and all of them find the same; they
 * stop if one observer says so. Errors as Evaluator.
 */
TERCEL_API EvaluationResult measure(Model& model, data::BatchReader& reader, const MetricOptions& options,
                                    RowObserver observer, double logit_shift = 0, RankingMetrics* ranking = nullptr,
                                    distributed::ProcessGroup* group = nullptr);
/** The values alone, on a part of a dataset; every row counts once. Warns as warn_of_bad_records(). */
TERCEL_API MetricValues evaluate(Model& model, const data::Dataset& dataset, data::PartName part,
                                 const ModelConfig& config, RowObserver observer, double logit_shift = 0);
/** A warn() with the number of rows that the reader left out and the first of them; none if it left out none. */
TERCEL_API void warn_of_bad_records(const data::BatchReader& reader);

}  // namespace tercel::recsys
