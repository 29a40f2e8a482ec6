// HugeCTR's AverageLoss.
#pragma once

#include "tercel/recsys/metrics/metric.h"

namespace tercel::recsys {

/**
 * The mean of the batches' mean cross entropies, each batch counting the same: a short last batch counts as a full one,
 * so that the value depends on batchsize_eval, unlike log_loss. Each call of add() is a batch.
 */
class TERCEL_API AverageLoss final : public Metric {
 public:
  std::string_view name() const override { return "average_loss"; }
  Better better() const override { return Better::Lower; }
  double value() override;
  void reset() override;

 private:
  void add_rows(const MetricRows& rows) override;
  void write_state(std::string& bytes) const override;
  void merge_state(ByteCursor& bytes) override;

  double sum_ = 0, batches_ = 0;
};

}  // namespace tercel::recsys
