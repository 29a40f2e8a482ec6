#include "tercel/recsys/metrics/ndcg.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "tercel/recsys/metrics/auc_impl.h"
#include "tercel/recsys/metrics/ranking_impl.h"
#include "tercel/recsys/metrics/state_impl.h"

namespace tercel::recsys {

namespace {

float label_of(uint64_t row) { return std::bit_cast<float>(static_cast<uint32_t>(row)); }

bool is_row(uint64_t row) { return std::isfinite(label_of(row)) && label_of(row) >= 0; }

}  // namespace

void Ndcg::add_rows(const MetricRows& rows) {
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    has_nan_ |= std::isnan(rows.logits[i]);
    const uint32_t label = std::bit_cast<uint32_t>(std::max(rows.labels[i], 0.0f));
    rows_.add(uint64_t{ordered_bits(-rows.logits[i])} << 32 | label);
  }
}

double Ndcg::value() {
  if (has_nan_) return std::numeric_limits<double>::quiet_NaN();
  double gains = 0, labels = 0, discounts = 0;  // the last two: of the rows that share a logit
  size_t place = 0, tied = 0;
  uint64_t logit = 0;
  std::vector<float> best;
  const auto settle = [&] {
    if (tied > 0) gains += labels * discounts / static_cast<double>(tied);
    labels = discounts = 0;
    tied = 0;
  };
  rows_.visit_ascending([&](Span<uint64_t> run) {
    for (const uint64_t row : run) {
      if (row >> 32 != logit) settle();
      logit = row >> 32;
      labels += static_cast<double>(label_of(row));
      discounts += discount_of(place++);
      ++tied;
      if (label_of(row) > 0) best.push_back(label_of(row));
    }
  });
  settle();
  std::sort(best.begin(), best.end(), std::greater<>());
  double most = 0;
  for (size_t i = 0; i < best.size(); ++i) most += static_cast<double>(best[i]) * discount_of(i);
  return most > 0 ? gains / most : std::numeric_limits<double>::quiet_NaN();
}

void Ndcg::reset() {
  rows_.clear();
  has_nan_ = false;
}

void Ndcg::write_state(std::string& bytes) const {
  put(bytes, static_cast<uint8_t>(has_nan_));
  rows_.write(bytes);
}

void Ndcg::merge_state(ByteCursor& bytes) {
  const bool has_nan = read_flag(bytes, "NaN flag");
  rows_.merge(bytes, is_row, "a row whose label is not negative");
  has_nan_ |= has_nan;
}

}  // namespace tercel::recsys
