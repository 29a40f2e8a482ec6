// Calibration: whether probabilities are right on average.
#pragma once

#include "tercel/recsys/metrics/metric.h"

namespace tercel::recsys {

/** Mean probability divided by mean label; 1 is perfect. NaN when no label is above 0. */
class TERCEL_API Calibration final : public Metric {
 public:
  std::string_view name() const override { return "calibration"; }
  Better better() const override { return Better::NearOne; }
  double value() override;
  void reset() override;

 private:
  void add_rows(const MetricRows& rows) override;
  void write_state(std::string& bytes) const override;
  void merge_state(ByteCursor& bytes) override;

  double probabilities_ = 0, labels_ = 0;
};

}  // namespace tercel::recsys
