#include "tercel/recsys/metrics/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

namespace {

/** Gain of a relevant row at a place, from 0. */
double gain(size_t place) { return 1 / std::log2(static_cast<double>(place) + 2); }

}  // namespace

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
  const auto relevant =
      static_cast<size_t>(std::count_if(group_.begin(), group_.end(), [](const auto& row) { return row.second != 0; }));
  const auto top = static_cast<size_t>(top_);
  if (relevant > 0) {
    std::partial_sort(group_.begin(), group_.begin() + top_, group_.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    double found = 0, best = 0;
    for (size_t place = 0; place < top; ++place) {
      if (group_[place].second != 0) found += gain(place);
      if (place < relevant) best += gain(place);
    }
    ++groups_;
    hits_ += found > 0 ? 1 : 0;
    gains_ += found / best;
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
