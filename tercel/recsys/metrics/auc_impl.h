// Parts of AUCs. Private.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace tercel::recsys {

/** Maps floats to unsigned numbers in the same order; -0 equals +0. */
inline uint32_t ordered_bits(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/** Counts pairs of rows in ascending order of scores. */
class PairCounter {
 public:
  /** The next row; its score is at least that of the one before. */
  void add(uint32_t score, bool positive, double weight) {
    if (score != score_) settle(score);
    (positive ? tied_positives_ : tied_negatives_) += weight;
  }

  /** The share of pairs that are in order; NaN without any. */
  double auc() {
    settle(0);
    if (positives_ == 0 || negatives_ == 0) return std::numeric_limits<double>::quiet_NaN();
    return below_ / (positives_ * negatives_);
  }

 private:
  void settle(uint32_t next_score) {
    below_ += tied_positives_ * (negatives_ + tied_negatives_ / 2);
    positives_ += tied_positives_;
    negatives_ += tied_negatives_;
    tied_positives_ = tied_negatives_ = 0;
    score_ = next_score;
  }

  uint32_t score_ = 0;
  double below_ = 0, positives_ = 0, negatives_ = 0;
  double tied_positives_ = 0, tied_negatives_ = 0;  // of the current score
};

}  // namespace tercel::recsys
