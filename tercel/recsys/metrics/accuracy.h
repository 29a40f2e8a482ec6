// Accuracy.
#pragma once

#include "tercel/recsys/metrics/metric.h"

namespace tercel::recsys {

/** Fraction of rows that a threshold of 0.5 on the probability classifies correctly. */
class TERCEL_API Accuracy final : public Metric {
 public:
  std::string_view name() const override { return "accuracy"; }
  Better better() const override { return Better::Higher; }
  double value() override;
  void reset() override;

 private:
  void add_rows(const MetricRows& rows) override;
  void write_state(std::string& bytes) const override;
  void merge_state(ByteCursor& bytes) override;

  double right_ = 0, weights_ = 0;
  bool has_nan_ = false;
};

}  // namespace tercel::recsys
