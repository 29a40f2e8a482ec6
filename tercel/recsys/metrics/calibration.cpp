#include "tercel/recsys/metrics/calibration.h"

#include <limits>

#include "tercel/recsys/metrics/probability_impl.h"
#include "tercel/recsys/metrics/state_impl.h"

namespace tercel::recsys {

void Calibration::add_rows(const MetricRows& rows) {
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    const double weight = weight_of(rows, i);
    probabilities_ += weight * probability_of(rows.logits[i]);
    labels_ += weight * static_cast<double>(rows.labels[i]);
  }
}

double Calibration::value() {
  return labels_ > 0 ? probabilities_ / labels_ : std::numeric_limits<double>::quiet_NaN();
}

void Calibration::reset() { probabilities_ = labels_ = 0; }

void Calibration::write_state(std::string& bytes) const {
  put(bytes, probabilities_);
  put(bytes, labels_);
}

void Calibration::merge_state(ByteCursor& bytes) {
  const auto probabilities = bytes.read<double>("sum of probabilities"), labels = bytes.read<double>("sum of labels");
  bytes.expect_end("the sums");
  probabilities_ += probabilities;
  labels_ += labels;
}

}  // namespace tercel::recsys
