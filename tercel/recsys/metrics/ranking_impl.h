// The ranking of one group of rows. Private.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace tercel::recsys {

/** Factor of the gain at a place, from 0. */
inline double discount_of(size_t place) { return 1 / std::log2(static_cast<double>(place) + 2); }

/** Whether a row of label 1 is among the best, and their NDCG. */
struct GroupRanking {
  bool is_hit = false;
  double ndcg = 0;
};

/**
 * Ranks the logits and labels of a group that has a row whose label is not 0: the best `top` rows are at the front
 * afterwards. Of rows with equal logits, those of label 0 come first.
 */
inline GroupRanking rank_group(std::vector<std::pair<float, float>>& rows, size_t top) {
  const auto is_relevant = [](const std::pair<float, float>& row) { return row.second != 0; };
  const auto relevant = static_cast<size_t>(std::count_if(rows.begin(), rows.end(), is_relevant));
  const size_t places = std::min(top, rows.size());
  std::partial_sort(
      rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(places), rows.end(),
      [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  double found = 0, best = 0;
  for (size_t place = 0; place < places; ++place) {
    if (is_relevant(rows[place])) found += discount_of(place);
    if (place < relevant) best += discount_of(place);
  }
  return {found > 0, found / best};
}

}  // namespace tercel::recsys
