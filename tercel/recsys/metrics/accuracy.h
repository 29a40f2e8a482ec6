// Accuracy.
#pragma once

#include "tercel/recsys/metrics/metric.h"

namespace tercel::recsys {

/** Fraction of rows that a threshold of 0.5 on the probability classifies correctly. */
class TERCEL_API Accuracy final : public Metric {
 public:
  std::string_view name() const override { return "accuracy"; }
  double value() override;
  void reset() override;

 private:
  void add_rows(Span<float> logits, Span<float> labels) override;
  void write_state(std::string& bytes) const override;
  void merge_state(ByteCursor& bytes) override;

  int64_t right_ = 0, rows_ = 0;
  bool has_nan_ = false;
};

}  // namespace tercel::recsys
