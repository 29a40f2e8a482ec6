// Precision above a threshold.
#pragma once

#include "tercel/recsys/metrics/metric.h"

namespace tercel::recsys {

/**
 * Of the rows whose probability is above a threshold, the fraction with a label above 0.5: "precision@0.8", which
 * HugeCTR calls HitRate. NaN if there is no such row.
 */
class TERCEL_API Precision final : public Metric {
 public:
  /** ConfigError unless the threshold is above 0 and below 1. */
  explicit Precision(double threshold);

  std::string_view name() const override { return name_; }
  Better better() const override { return Better::Higher; }
  double value() override;
  void reset() override;

 private:
  void add_rows(const MetricRows& rows) override;
  void write_state(std::string& bytes) const override;
  void merge_state(ByteCursor& bytes) override;

  double threshold_;
  std::string name_;
  double right_ = 0, above_ = 0;
  bool has_nan_ = false;
};

}  // namespace tercel::recsys
