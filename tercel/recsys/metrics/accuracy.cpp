#include "tercel/recsys/metrics/accuracy.h"

#include <cmath>
#include <limits>

#include "tercel/recsys/metrics/state_impl.h"

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

void Accuracy::write_state(std::string& bytes) const {
  put(bytes, right_);
  put(bytes, rows_);
  put(bytes, static_cast<uint8_t>(has_nan_));
}

void Accuracy::merge_state(ByteCursor& bytes) {
  const int64_t right = read_count(bytes, right_, "right rows"), rows = read_count(bytes, rows_, "rows");
  if (right - right_ > rows - rows_) bytes.fail("at most as many right rows as rows", std::to_string(right - right_));
  const bool has_nan = read_flag(bytes, "NaN flag");
  bytes.expect_end("the NaN flag");
  right_ = right;
  rows_ = rows;
  has_nan_ |= has_nan;
}

}  // namespace tercel::recsys
