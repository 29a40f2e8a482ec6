// Area under the ROC curve.
#pragma once

#include "tercel/recsys/metrics/metric.h"
#include "tercel/recsys/metrics/scored_rows.h"

namespace tercel::recsys {

/**
 * The probability that a random positive row scores above a random negative one, ties counting half: exact, over all
 * rows, in 8 bytes a row. NaN unless both labels occur.
 */
class TERCEL_API Auc final : public Metric {
 public:
  std::string_view name() const override { return "auc"; }
  Better better() const override { return Better::Higher; }
  double value() override;
  void reset() override;

 private:
  void add_rows(const MetricRows& rows) override;
  void write_state(std::string& bytes) const override;
  void merge_state(ByteCursor& bytes) override;

  // Order-preserving bits of the logit, then the label, then the bits of the weight, which has no sign.
  ScoredRows rows_;
  bool has_nan_ = false;
};

}  // namespace tercel::recsys
