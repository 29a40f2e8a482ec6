#include "tercel/recsys/metrics/average_loss.h"

#include <limits>

#include "tercel/recsys/metrics/probability_impl.h"
#include "tercel/recsys/metrics/state_impl.h"

namespace tercel::recsys {

void AverageLoss::add_rows(const MetricRows& rows) {
  double sum = 0, weights = 0;
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    const double weight = weight_of(rows, i);
    sum += weight * cross_entropy(rows.logits[i], rows.labels[i]);
    weights += weight;
  }
  if (weights == 0) return;
  sum_ += sum / weights;
  batches_ += 1;
}

double AverageLoss::value() { return batches_ > 0 ? sum_ / batches_ : std::numeric_limits<double>::quiet_NaN(); }

void AverageLoss::reset() { sum_ = batches_ = 0; }

void AverageLoss::write_state(std::string& bytes) const {
  put(bytes, sum_);
  put(bytes, batches_);
}

void AverageLoss::merge_state(ByteCursor& bytes) {
  const auto sum = bytes.read<double>("sum");
  const double batches = read_weight(bytes, "batches");
  bytes.expect_end("the batches");
  sum_ += sum;
  batches_ += batches;
}

}  // namespace tercel::recsys
