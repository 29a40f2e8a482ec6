// Functions of a logit. Private.
#pragma once

#include <algorithm>
#include <cmath>

namespace tercel::recsys {

/** The sigmoid of a logit. */
inline double probability_of(double logit) { return 1 / (1 + std::exp(-logit)); }

/** -log(sigmoid(x)); exact at either end, where the sigmoid is 0 or 1. */
inline double surprise(double x) { return std::max(-x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

/** Cross entropy in nats of a logit and a label from 0 to 1. */
inline double cross_entropy(double logit, double label) {
  // 0 times infinity must not give NaN.
  double sum = 0;
  if (label > 0) sum += label * surprise(logit);
  if (label < 1) sum += (1 - label) * surprise(-logit);
  return sum;
}

/** Entropy in nats of a label whose mean is `rate`; 0 at either end. */
inline double entropy(double rate) {
  return (rate > 0 ? -rate * std::log(rate) : 0) + (rate < 1 ? -(1 - rate) * std::log1p(-rate) : 0);
}

}  // namespace tercel::recsys
