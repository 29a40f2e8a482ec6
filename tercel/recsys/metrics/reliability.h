// The reliability diagram of predictions: how often rows of a probability have label 1.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/recsys/metrics/metric.h"

namespace tercel::recsys {

/** Rows of similar probabilities. */
struct ReliabilityBin {
  double rows = 0;        ///< sum of their weights
  double prediction = 0;  ///< mean probability
  double label = 0;       ///< mean label
  friend bool operator==(const ReliabilityBin&, const ReliabilityBin&) = default;
};

/** Accumulates a fixed, fine histogram over the logit: its size does not depend on the rows. */
class TERCEL_API Reliability {
 public:
  Reliability();

  /** Adds rows; those with a logit that is NaN are left out. */
  void add(const MetricRows& rows);
  /** At most `count` bins, ascending by probability, with about equally many rows each; none without rows. */
  std::vector<ReliabilityBin> bins(int64_t count) const;

 private:
  std::vector<ReliabilityBin> fine_;  // sums, not means
};

}  // namespace tercel::recsys
