#include "tercel/recsys/metrics/calibration.h"

#include <cmath>
#include <limits>

#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/cursor.h"

namespace tercel::recsys {

void Calibration::add_rows(Span<float> logits, Span<float> labels) {
  for (size_t i = 0; i < logits.size(); ++i) {
    probabilities_ += 1 / (1 + std::exp(-static_cast<double>(logits[i])));
    labels_ += static_cast<double>(labels[i]);
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
