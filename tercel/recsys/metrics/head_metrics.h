// The metrics of all heads of a model.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/recsys/metrics/head_rows.h"
#include "tercel/recsys/metrics/metric.h"
#include "tercel/recsys/metrics/metric_options.h"
#include "tercel/recsys/metrics/reliability.h"
#include "tercel/recsys/metrics/slices.h"
#include "tercel/recsys/model/graph.h"

namespace tercel::recsys {

/** More about the rows of a head than its metrics. */
struct HeadDetails {
  std::string name;                  ///< of the head's loss
  std::vector<ReliabilityBin> bins;  ///< of all its columns together
  std::vector<Slice> slices;         ///< the same; none unless they were asked for
};

class TERCEL_API HeadMetrics {
 public:
  /** ConfigError as check_metric_options(), and for a target of a value that the heads do not have. */
  explicit HeadMetrics(std::vector<Head> heads, const MetricOptions& options = {});

  /**
   * Adds the rows of a batch: the logits [B, columns] of each head, and the labels [B, label_dim] of all; floating.
   * `context` has groups if a metric needs them, and keys for slices if they are asked for.
   */
  void add(Span<Tensor> logits, const Tensor& labels, const RowContext& context = {});
  /**
   * Every metric by its name, with one head. With several heads: "auc", the mean of the heads' AUC weighted by their
   * weights (all alike if all weights are 0), without heads whose labels are of one class, which ranks checkpoints;
   * then the metrics of each as "auc/loss1".
   *
   * The metric of a head of several labels or of more than two classes is the plain mean over its columns (HeadRows) of
   * those for which it is defined; but log_loss, average_loss and accuracy of classes are those of the softmax. Those
   * of each label are behind it: "auc/loss1/0".
   */
  std::vector<std::pair<std::string, double>> values() const;
  /** Of each head: at most 20 bins, and MetricOptions::slices. */
  std::vector<HeadDetails> details();

 private:
  using Metrics = std::vector<std::unique_ptr<Metric>>;
  struct State {
    State(const Head& head, const MetricOptions& options) : rows(head), slices(options.metrics) {}
    HeadRows rows;
    std::vector<Metrics> columns;  // of each column
    bool has_nan = false;
    Reliability reliability;
    SliceMetrics slices;
  };
  Metrics make_all() const;
  double value_of(const State& state, size_t metric) const;
  void add_labels(size_t h, std::vector<std::pair<std::string, double>>& out) const;

  std::vector<Head> heads_;
  MetricOptions options_;
  std::vector<State> states_;  // of each head
};

}  // namespace tercel::recsys
