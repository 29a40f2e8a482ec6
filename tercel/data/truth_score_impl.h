// AUC and log loss of known probabilities over any number of rows, in constant memory. Private.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tercel/data/dataset.h"

namespace tercel::data {

/**
 * Counts rows in 2^20 bins of their logit. Rows in one bin count as ties, so the AUC is exact up to auc_error(), which
 * is below 1e-5 for smooth distributions.
 */
class TruthScore {
 public:
  /** Logits further than 12 standard deviations from the mean share the outermost bins. */
  TruthScore(double logit_mean, double logit_std);

  void add(int64_t rows, const float* labels, const float* logits);

  int64_t rows() const { return rows_; }
  int64_t clicks() const { return clicks_; }
  /** None while there are no rows of one of the two labels. */
  std::optional<PlantedTruth> result() const;
  /** Bound on the error of the AUC. */
  double auc_error() const;

 private:
  double low_, bins_per_unit_;
  std::vector<int64_t> clicked_, not_clicked_;
  int64_t rows_ = 0, clicks_ = 0;
  double loss_sum_ = 0;
};

}  // namespace tercel::data
