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

  /** Adds the rows of a batch: the logits [B, 1] of each head, and the labels [B, label_dim] of all; floating. */
  void add(Span<Tensor> logits, const Tensor& labels);
  /**
   * Every metric by its name, with one head. With several heads: "auc", the mean of the heads' AUC weighted by their
   * weights (all alike if all weights are 0), without heads whose labels are of one class, which ranks checkpoints;
   * then the metrics of each as "auc/loss1".
   */
  std::vector<std::pair<std::string, double>> values() const;

 private:
  std::vector<Head> heads_;
  std::vector<std::vector<std::unique_ptr<Metric>>> metrics_;  // of each head
};

}  // namespace tercel::recsys
