// The metrics of all heads of a model.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/recsys/metrics/metric.h"
#include "tercel/recsys/model/graph.h"

namespace tercel::recsys {

class TERCEL_API HeadMetrics {
 public:
  explicit HeadMetrics(std::vector<Head> heads);

  /** Adds the rows of a batch: the logits [B, n] of each head, and the labels [B, label_dim] of all; floating. */
  void add(Span<Tensor> logits, const Tensor& labels);
  /**
   * Every metric by its name, with one head. With several heads: "auc", the mean of the heads' AUC weighted by their
   * weights (all alike if all weights are 0), without heads whose labels are of one class, which ranks checkpoints;
   * then the metrics of each as "auc/loss1". A metric of a head with several columns or classes is the plain mean over
   * its binary_problems() in which it is defined.
   */
  std::vector<std::pair<std::string, double>> values() const;

 private:
  using Metrics = std::vector<std::unique_ptr<Metric>>;
  /** One metric of a head. */
  double value_of(size_t head, size_t metric) const;

  std::vector<Head> heads_;
  std::vector<std::vector<Metrics>> metrics_;  // of each of a head's binary problems
  std::vector<bool> has_nan_;                  // among the logits of a head with several columns
};

}  // namespace tercel::recsys
