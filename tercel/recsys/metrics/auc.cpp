#include "tercel/recsys/metrics/auc.h"

#include <bit>
#include <cmath>
#include <limits>

#include "tercel/recsys/metrics/auc_impl.h"
#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/cursor.h"

namespace tercel::recsys {

namespace {

constexpr uint64_t kPositive = uint64_t{1} << 31, kWeight = kPositive - 1;

float weight_of(uint64_t row) { return std::bit_cast<float>(static_cast<uint32_t>(row & kWeight)); }

bool is_row(uint64_t row) { return std::isfinite(weight_of(row)) && weight_of(row) > 0; }

}  // namespace

void Auc::add_rows(const MetricRows& rows) {
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    has_nan_ |= std::isnan(rows.logits[i]);
    const uint32_t weight = std::bit_cast<uint32_t>(rows.weights.empty() ? 1.0f : rows.weights[i]);
    rows_.add(uint64_t{ordered_bits(rows.logits[i])} << 32 | (rows.labels[i] > 0.5f ? kPositive : 0) | weight);
  }
}

double Auc::value() {
  if (has_nan_) return std::numeric_limits<double>::quiet_NaN();
  PairCounter counter;
  rows_.visit_ascending([&](Span<uint64_t> run) {
    for (const uint64_t row : run)
      counter.add(static_cast<uint32_t>(row >> 32), (row & kPositive) != 0, static_cast<double>(weight_of(row)));
  });
  return counter.auc();
}

void Auc::reset() {
  rows_.clear();
  has_nan_ = false;
}

void Auc::write_state(std::string& bytes) const {
  put(bytes, static_cast<uint8_t>(has_nan_));
  rows_.write(bytes);
}

void Auc::merge_state(ByteCursor& bytes) {
  const bool has_nan = read_flag(bytes, "NaN flag");
  rows_.merge(bytes, is_row, "a row whose weight is above 0");
  has_nan_ |= has_nan;
}

}  // namespace tercel::recsys
