// Quality of rankings: each group of consecutive rows is a list of candidates, of which a few are relevant.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

/**
 * Hit rate and NDCG of the best `top` rows of each group of `group_rows` rows, as in He et al., "Neural collaborative
 * filtering" (2017), where a group is a rating that was held out and 99 items without one. Of rows with equal logits,
 * those of label 0 come first. Groups without a row of label 1 do not count.
 */
class TERCEL_API RankingMetrics {
 public:
  /** ConfigError unless 1 <= top <= group_rows. */
  RankingMetrics(int64_t group_rows, int64_t top);

  /** Adds rows: logits and the same number of labels, 0 or 1; a group may continue with the next call. */
  void add(Span<float> logits, Span<float> labels);
  /**
   * "hit_rate@10", the share of groups with a row of label 1 among the best, and "ndcg@10"; NaN without groups or with
   * a logit that is NaN. DataError if the last group is not complete.
   */
  std::vector<std::pair<std::string, double>> values() const;

 private:
  void finish_group();

  int64_t group_rows_, top_;
  std::vector<std::pair<float, float>> group_;  // logit and label of each row so far
  int64_t groups_ = 0;
  double hits_ = 0, gains_ = 0;
};

}  // namespace tercel::recsys
