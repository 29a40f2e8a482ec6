#include "tercel/recsys/metrics/log_loss.h"

#include <limits>

#include "tercel/recsys/metrics/probability_impl.h"
#include "tercel/recsys/metrics/state_impl.h"

namespace tercel::recsys {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void LogLoss::add_rows(const MetricRows& rows) {
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    const double weight = weight_of(rows, i);
    sum_ += weight * cross_entropy(rows.logits[i], rows.labels[i]);
    weights_ += weight;
  }
}

double LogLoss::value() { return weights_ > 0 ? sum_ / weights_ : kUndefined; }

void LogLoss::reset() { sum_ = weights_ = 0; }

void LogLoss::write_state(std::string& bytes) const {
  put(bytes, sum_);
  put(bytes, weights_);
}

void LogLoss::merge_state(ByteCursor& bytes) {
  const auto sum = bytes.read<double>("sum");
  const double weights = read_weight(bytes, "rows");
  bytes.expect_end("the rows");
  sum_ += sum;
  weights_ += weights;
}

void NormalizedEntropy::add_rows(const MetricRows& rows) {
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    const double weight = weight_of(rows, i), label = rows.labels[i];
    sum_ += weight * cross_entropy(rows.logits[i], label);
    labels_ += weight * label;
    weights_ += weight;
  }
}

double NormalizedEntropy::value() {
  if (weights_ == 0) return kUndefined;
  const double rate = labels_ / weights_;
  return rate > 0 && rate < 1 ? sum_ / weights_ / entropy(rate) : kUndefined;
}

void NormalizedEntropy::reset() { sum_ = labels_ = weights_ = 0; }

void NormalizedEntropy::write_state(std::string& bytes) const {
  put(bytes, sum_);
  put(bytes, labels_);
  put(bytes, weights_);
}

void NormalizedEntropy::merge_state(ByteCursor& bytes) {
  const auto sum = bytes.read<double>("sum"), labels = bytes.read<double>("sum of labels");
  const double weights = read_weight(bytes, "rows");
  bytes.expect_end("the rows");
  sum_ += sum;
  labels_ += labels;
  weights_ += weights;
}

}  // namespace tercel::recsys
