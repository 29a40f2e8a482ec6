// Logarithmic loss.
#pragma once

#include "tercel/recsys/metrics/metric.h"

namespace tercel::recsys {

/** Mean binary cross entropy in nats, from the logits, so that no probability is rounded to 0 or 1. */
class TERCEL_API LogLoss final : public Metric {
 public:
  std::string_view name() const override { return "log_loss"; }
  Better better() const override { return Better::Lower; }
  double value() override;
  void reset() override;

 private:
  void add_rows(const MetricRows& rows) override;
  void write_state(std::string& bytes) const override;
  void merge_state(ByteCursor& bytes) override;

  double sum_ = 0, weights_ = 0;
};

/**
 * Normalized entropy: the log loss divided by that of always predicting the rows' mean label, so that it compares rows
 * of different click rates; below 1 is better than that (He et al., "Practical lessons from predicting clicks on ads at
 * Facebook", 2014). NaN if all labels are 0, or all 1.
 */
class TERCEL_API NormalizedEntropy final : public Metric {
 public:
  std::string_view name() const override { return "ne"; }
  Better better() const override { return Better::Lower; }
  double value() override;
  void reset() override;

 private:
  void add_rows(const MetricRows& rows) override;
  void write_state(std::string& bytes) const override;
  void merge_state(ByteCursor& bytes) override;

  double sum_ = 0, labels_ = 0, weights_ = 0;
};

}  // namespace tercel::recsys
