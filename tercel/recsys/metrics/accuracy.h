// Share of right decisions.
#pragma once

#include "tercel/recsys/metrics/metric.h"

namespace tercel::recsys {

/** Share of rows whose label is what a threshold of 0.5 on the probability says. */
class TERCEL_API Accuracy final : public Metric {
 public:
  std::string_view name() const override { return "accuracy"; }
  double value() override;
  void reset() override;

 private:
  void add_rows(Span<float> logits, Span<float> labels) override;

  int64_t right_ = 0, rows_ = 0;
  bool has_nan_ = false;
};

}  // namespace tercel::recsys
