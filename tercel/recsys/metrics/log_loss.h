// Logarithmic loss.
#pragma once

#include "tercel/recsys/metrics/metric.h"

namespace tercel::recsys {

/** Mean binary cross entropy in nats, from the logits, so that no probability is rounded to 0 or 1. */
class TERCEL_API LogLoss final : public Metric {
 public:
  std::string_view name() const override { return "log_loss"; }
  double value() override;
  void reset() override;

 private:
  void add_rows(Span<float> logits, Span<float> labels) override;
  void write_state(std::string& bytes) const override;
  void merge_state(ByteCursor& bytes) override;

  double sum_ = 0;
  int64_t rows_ = 0;
};

}  // namespace tercel::recsys
