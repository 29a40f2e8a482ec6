#include "tercel/recsys/metrics/log_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/cursor.h"

namespace tercel::recsys {

namespace {

/** -log(sigmoid(x)); exact at either end, where the sigmoid is 0 or 1. */
double surprise(double x) { return std::max(-x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

}  // namespace

void LogLoss::add_rows(Span<float> logits, Span<float> labels) {
  for (size_t i = 0; i < logits.size(); ++i) {
    const double x = logits[i], y = labels[i];
    // 0 times infinity must not give NaN.
    if (y > 0) sum_ += y * surprise(x);
    if (y < 1) sum_ += (1 - y) * surprise(-x);
  }
  rows_ += static_cast<int64_t>(logits.size());
}

double LogLoss::value() {
  return rows_ > 0 ? sum_ / static_cast<double>(rows_) : std::numeric_limits<double>::quiet_NaN();
}

void LogLoss::reset() {
  sum_ = 0;
  rows_ = 0;
}

void LogLoss::write_state(std::string& bytes) const {
  put(bytes, sum_);
  put(bytes, rows_);
}

void LogLoss::merge_state(ByteCursor& bytes) {
  const auto sum = bytes.read<double>("sum");
  const int64_t rows = read_count(bytes, rows_, "rows");
  bytes.expect_end("the rows");
  sum_ += sum;
  rows_ = rows;
}

}  // namespace tercel::recsys
