// An evaluation batch by batch, of rows from anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tercel/data/batch.h"
#include "tercel/distributed/process_group.h"
#include "tercel/recsys/metrics/head_metrics.h"
#include "tercel/recsys/metrics/metric_options.h"
#include "tercel/recsys/model/model.h"
#include "tercel/recsys/row_keys.h"

namespace tercel::recsys {

/**
 * Values by name: those of MetricOptions::metrics, by default auc, log_loss, accuracy, calibration. Of a model with
 * several heads: auc, the mean of the heads' weighted by their weights (all alike if all weights are 0), then auc/loss1
 * and so on of each head.
 */
using MetricValues = std::vector<std::pair<std::string, double>>;

/** What an evaluation finds. */
struct EvaluationResult {
  MetricValues values;             ///< empty if it was stopped
  std::vector<HeadDetails> heads;  ///< reliability diagrams and slices
};

class TERCEL_API Evaluator {
 public:
  /** ConfigError as check_metric_options(), and for a slot of groups or slices that the rows do not have. */
  Evaluator(const Model& model, const MetricOptions& options, double logit_shift = 0);
  /** From now on each batch is a rank's part, and the metrics of all ranks are those of all rows, in the same order. */
  void set_group(distributed::ProcessGroup& group) { group_ = &group; }

  /** Adds a batch with labels, and weights if it has some, and the logits of each head, to which `logit_shift` is
   * added.
   */
  void add(const data::Batch& batch, const std::vector<Tensor>& logits);
  /** The metrics of all rows so far; a warn() if all of them weigh 0, where most metrics have no value. */
  MetricValues values() const;
  /** The same, with the details of each head. */
  EvaluationResult result() { return {values(), metrics_.details()}; }

 private:
  std::vector<Head> heads_;
  HeadMetrics metrics_;
  double logit_shift_;
  int64_t rows_ = 0;
  int64_t rows_without_weight_ = 0;
  std::optional<RowKeys> groups_, slices_;
  distributed::ProcessGroup* group_ = nullptr;
};

/** The heads' logits, those of LossKind::Binary with a shift; they do not change where it is 0. */
TERCEL_API std::vector<Tensor> shifted(std::vector<Tensor> logits, Span<Head> heads, double logit_shift);

/** Columns that the reader of an evaluation must be asked for: those of groups and slices that are no slots. */
TERCEL_API std::vector<std::string> evaluation_columns(const Model& model, const MetricOptions& options);

}  // namespace tercel::recsys
