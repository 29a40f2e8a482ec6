#include "tercel/recsys/metrics/accuracy.h"

#include <cmath>
#include <limits>

#include "tercel/recsys/metrics/state_impl.h"

namespace tercel::recsys {

void Accuracy::add_rows(const MetricRows& rows) {
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    has_nan_ |= std::isnan(rows.logits[i]);
    const double weight = weight_of(rows, i);
    if ((rows.logits[i] > 0) == (rows.labels[i] > 0.5f)) right_ += weight;
    weights_ += weight;
  }
}

double Accuracy::value() {
  return has_nan_ || weights_ == 0 ? std::numeric_limits<double>::quiet_NaN() : right_ / weights_;
}

void Accuracy::reset() {
  right_ = weights_ = 0;
  has_nan_ = false;
}

void Accuracy::write_state(std::string& bytes) const {
  put(bytes, right_);
  put(bytes, weights_);
  put(bytes, static_cast<uint8_t>(has_nan_));
}

void Accuracy::merge_state(ByteCursor& bytes) {
  const double right = read_weight(bytes, "right rows"), weights = read_weight(bytes, "rows");
  if (right > weights * (1 + 1e-12)) bytes.fail("at most as many right rows as rows", format_double(right));
  const bool has_nan = read_flag(bytes, "NaN flag");
  bytes.expect_end("the NaN flag");
  right_ += right;
  weights_ += weights;
  has_nan_ |= has_nan;
}

}  // namespace tercel::recsys
