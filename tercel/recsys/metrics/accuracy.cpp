#include "tercel/recsys/metrics/accuracy.h"

#include <cmath>
#include <limits>

namespace tercel::recsys {

void Accuracy::add_rows(Span<float> logits, Span<float> labels) {
  for (size_t i = 0; i < logits.size(); ++i) {
    has_nan_ |= std::isnan(logits[i]);
    right_ += (logits[i] > 0) == (labels[i] > 0.5f);
  }
  rows_ += static_cast<int64_t>(logits.size());
}

double Accuracy::value() {
  if (has_nan_ || rows_ == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(right_) / static_cast<double>(rows_);
}

void Accuracy::reset() {
  right_ = rows_ = 0;
  has_nan_ = false;
}

}  // namespace tercel::recsys
