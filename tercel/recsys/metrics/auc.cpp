#include "tercel/recsys/metrics/auc.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/cursor.h"
#include "tercel/util/parallel.h"

namespace tercel::recsys {

namespace {

constexpr size_t kBlockRows = size_t{1} << 18;

/** Maps floats to unsigned numbers in the same order; -0 equals +0. */
uint64_t ordered_bits(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/** Counts pairs of rows in ascending order of scores. */
class PairCounter {
 public:
  void add(uint64_t row) {
    if (row >> 1 != score_) settle(row >> 1);
    ((row & 1) != 0 ? tied_positives_ : tied_negatives_) += 1;
  }

  double auc() {
    settle(0);
    if (positives_ == 0 || negatives_ == 0) return std::numeric_limits<double>::quiet_NaN();
    return below_ / (positives_ * negatives_);
  }

 private:
  void settle(uint64_t next_score) {
    below_ += tied_positives_ * (negatives_ + tied_negatives_ / 2);
    positives_ += tied_positives_;
    negatives_ += tied_negatives_;
    tied_positives_ = tied_negatives_ = 0;
    score_ = next_score;
  }

  uint64_t score_ = 0;
  double below_ = 0, positives_ = 0, negatives_ = 0;
  double tied_positives_ = 0, tied_negatives_ = 0;  // of the current score
};

}  // namespace

void Auc::add_rows(Span<float> logits, Span<float> labels) {
  for (size_t i = 0; i < logits.size(); ++i) {
    has_nan_ |= std::isnan(logits[i]);
    add_row(ordered_bits(logits[i]) << 1 | (labels[i] > 0.5f ? 1 : 0));
  }
}

void Auc::add_row(uint64_t row) {
  if (blocks_.empty() || blocks_.back().size() == kBlockRows) blocks_.emplace_back().reserve(kBlockRows);
  blocks_.back().push_back(row);
}

double Auc::value() {
  if (has_nan_) return std::numeric_limits<double>::quiet_NaN();
  parallel_for(0, static_cast<int64_t>(blocks_.size()), 1, [this](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      std::vector<uint64_t>& rows = blocks_[static_cast<size_t>(b)];
      std::sort(rows.begin(), rows.end());
    }
  });
  // Merges the blocks: a heap of their first rows, the lowest at the front.
  struct Front {
    uint64_t row;
    const uint64_t *next, *end;
    bool operator<(const Front& other) const { return row > other.row; }
  };
  std::vector<Front> fronts;
  for (const std::vector<uint64_t>& rows : blocks_)
    fronts.push_back({rows[0], rows.data() + 1, rows.data() + rows.size()});
  std::make_heap(fronts.begin(), fronts.end());
  PairCounter counter;
  while (!fronts.empty()) {
    std::pop_heap(fronts.begin(), fronts.end());
    Front& lowest = fronts.back();
    const uint64_t bound = fronts.size() > 1 ? fronts.front().row : std::numeric_limits<uint64_t>::max();
    // Rows up to the next front come from the same block.
    counter.add(lowest.row);
    while (lowest.next != lowest.end && *lowest.next <= bound) counter.add(*lowest.next++);
    if (lowest.next == lowest.end) {
      fronts.pop_back();
    } else {
      lowest.row = *lowest.next++;
      std::push_heap(fronts.begin(), fronts.end());
    }
  }
  return counter.auc();
}

void Auc::reset() {
  blocks_.clear();
  has_nan_ = false;
}

void Auc::write_state(std::string& bytes) const {
  uint64_t rows = 0;
  for (const std::vector<uint64_t>& block : blocks_) rows += block.size();
  bytes.reserve(bytes.size() + (rows + 3) * sizeof(uint64_t));
  put(bytes, static_cast<uint8_t>(has_nan_));
  put(bytes, rows);
  for (const std::vector<uint64_t>& block : blocks_)
    bytes.append(reinterpret_cast<const char*>(block.data()), block.size() * sizeof(uint64_t));
}

void Auc::merge_state(ByteCursor& bytes) {
  const bool has_nan = read_flag(bytes, "NaN flag");
  const size_t rows = bytes.check_count(bytes.read<uint64_t>("number of rows"), sizeof(uint64_t), "rows");
  ByteCursor values = bytes.sub(rows * sizeof(uint64_t), "rows");
  bytes.expect_end("the rows");
  ByteCursor checked = values;
  for (size_t i = 0; i < rows; ++i)
    if (checked.read<uint64_t>("row") >> 33 != 0) checked.fail("the 33 bits of a logit and a label", "more");
  has_nan_ |= has_nan;
  for (size_t i = 0; i < rows; ++i) add_row(values.read<uint64_t>("row"));
}

}  // namespace tercel::recsys
