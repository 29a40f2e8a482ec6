#include "tercel/recsys/metrics/precision.h"

#include <cmath>
#include <limits>

#include "tercel/recsys/metrics/probability_impl.h"
#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

Precision::Precision(double threshold) : threshold_(threshold), name_("precision@" + format_double(threshold)) {
  TERCEL_CHECK(threshold > 0 && threshold < 1, ConfigError,
               "precision: expected a threshold above 0 and below 1, found ", threshold);
}

void Precision::add_rows(const MetricRows& rows) {
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    has_nan_ |= std::isnan(rows.logits[i]);
    if (!(probability_of(rows.logits[i]) > threshold_)) continue;
    const double weight = weight_of(rows, i);
    above_ += weight;
    if (rows.labels[i] > 0.5f) right_ += weight;
  }
}

double Precision::value() {
  return has_nan_ || above_ == 0 ? std::numeric_limits<double>::quiet_NaN() : right_ / above_;
}

void Precision::reset() {
  right_ = above_ = 0;
  has_nan_ = false;
}

void Precision::write_state(std::string& bytes) const {
  put(bytes, right_);
  put(bytes, above_);
  put(bytes, static_cast<uint8_t>(has_nan_));
}

void Precision::merge_state(ByteCursor& bytes) {
  const double right = read_weight(bytes, "right rows"), above = read_weight(bytes, "rows above the threshold");
  if (right > above * (1 + 1e-12)) bytes.fail("at most as many right rows as rows", format_double(right));
  const bool has_nan = read_flag(bytes, "NaN flag");
  bytes.expect_end("the NaN flag");
  right_ += right;
  above_ += above;
  has_nan_ |= has_nan;
}

}  // namespace tercel::recsys
