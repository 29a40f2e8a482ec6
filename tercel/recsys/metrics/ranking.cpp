#include "tercel/recsys/metrics/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tercel/recsys/metrics/ranking_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

RankingMetrics::RankingMetrics(int64_t group_rows, int64_t top) : group_rows_(group_rows), top_(top) {
  TERCEL_CHECK(group_rows >= 1, ConfigError, "ranking: expected groups of at least 1 row, found ", group_rows);
  TERCEL_CHECK(top >= 1 && top <= group_rows, ConfigError, "ranking: expected 1 to ", group_rows,
               " best rows of each group, found ", top);
}

void RankingMetrics::add(Span<float> logits, Span<float> labels) {
  TERCEL_CHECK(logits.size() == labels.size(), ValueError, "ranking: expected as many labels as logits, found ",
               labels.size(), " and ", logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    group_.emplace_back(logits[i], labels[i]);
    if (static_cast<int64_t>(group_.size()) == group_rows_) finish_group();
  }
}

void RankingMetrics::finish_group() {
  const auto is_nan = [](const auto& row) { return std::isnan(row.first); };
  if (std::any_of(group_.begin(), group_.end(), is_nan)) {
    hits_ = gains_ = std::numeric_limits<double>::quiet_NaN();
    ++groups_;
    group_.clear();
    return;
  }
  const auto is_relevant = [](const auto& row) { return row.second != 0; };
  if (std::any_of(group_.begin(), group_.end(), is_relevant)) {
    const GroupRanking ranking = rank_group(group_, static_cast<size_t>(top_));
    ++groups_;
    hits_ += ranking.is_hit ? 1 : 0;
    gains_ += ranking.ndcg;
  }
  group_.clear();
}

std::vector<std::pair<std::string, double>> RankingMetrics::values() const {
  TERCEL_CHECK(group_.empty(), DataError, "ranking: expected groups of ", group_rows_, " rows, found a last one of ",
               group_.size());
  const auto mean = [this](double sum) {
    return groups_ > 0 ? sum / static_cast<double>(groups_) : std::numeric_limits<double>::quiet_NaN();
  };
  return {{str_cat({"hit_rate@", top_}), mean(hits_)}, {str_cat({"ndcg@", top_}), mean(gains_)}};
}

}  // namespace tercel::recsys
