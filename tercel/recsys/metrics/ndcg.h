// NDCG of all rows as one list.
#pragma once

#include "tercel/recsys/metrics/metric.h"
#include "tercel/recsys/metrics/scored_rows.h"

namespace tercel::recsys {

/**
 * Normalized discounted cumulative gain of all rows as one list, as HugeCTR's NDCG: the sum of label / log2(place + 1)
 * in the order of the logits, divided by the same in the order of the labels. Rows of equal logits share the mean of
 * their labels, so that their order does not matter (McSherry and Najork, "Computing information retrieval performance
 * measures efficiently in the presence of tied scores", 2008). NaN without a label above 0. ndcg@K is that of groups.
 */
class TERCEL_API Ndcg final : public Metric {
 public:
  std::string_view name() const override { return "ndcg"; }
  Better better() const override { return Better::Higher; }
  double value() override;
  void reset() override;

 private:
  void add_rows(const MetricRows& rows) override;
  void write_state(std::string& bytes) const override;
  void merge_state(ByteCursor& bytes) override;

  // Order-preserving bits of the negated logit, best first, then the label.
  ScoredRows rows_;
  bool has_nan_ = false;
};

}  // namespace tercel::recsys
