#include "tercel/recsys/metrics/calibration.h"

#include <cmath>
#include <limits>

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

}  // namespace tercel::recsys
