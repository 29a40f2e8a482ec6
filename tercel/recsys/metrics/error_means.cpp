#include "tercel/recsys/metrics/error_means.h"

#include <cmath>
#include <limits>

#include "tercel/recsys/metrics/probability_impl.h"
#include "tercel/recsys/metrics/state_impl.h"

namespace tercel::recsys {

void ErrorMean::add_rows(const MetricRows& rows) {
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    const double weight = weight_of(rows, i);
    sum_ += weight * error(probability_of(rows.logits[i]), rows.labels[i]);
    weights_ += weight;
  }
}

double ErrorMean::value() { return weights_ > 0 ? of_mean(sum_ / weights_) : std::numeric_limits<double>::quiet_NaN(); }

void ErrorMean::reset() { sum_ = weights_ = 0; }

void ErrorMean::write_state(std::string& bytes) const {
  put(bytes, sum_);
  put(bytes, weights_);
}

void ErrorMean::merge_state(ByteCursor& bytes) {
  const auto sum = bytes.read<double>("sum");
  const double weights = read_weight(bytes, "rows");
  bytes.expect_end("the rows");
  sum_ += sum;
  weights_ += weights;
}

double MeanAbsoluteError::error(double prediction, double label) const { return std::abs(prediction - label); }

double RootMeanSquaredError::error(double prediction, double label) const {
  return (prediction - label) * (prediction - label);
}

double RootMeanSquaredError::of_mean(double mean) const { return std::sqrt(mean); }

double Smape::error(double prediction, double label) const {
  if (prediction == 0 && label == 0) return 0;
  return std::abs(prediction - label) / ((prediction + label) / 2);
}

}  // namespace tercel::recsys
