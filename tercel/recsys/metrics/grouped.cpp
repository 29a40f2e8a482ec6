#include "tercel/recsys/metrics/grouped.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "tercel/recsys/metrics/auc_impl.h"
#include "tercel/recsys/metrics/ranking_impl.h"
#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

namespace {

constexpr size_t kRowBytes = sizeof(int64_t) + 3 * sizeof(float);  // in states

int64_t checked_top(int64_t top, std::string_view name) {
  TERCEL_CHECK(top >= 1, ConfigError, name, ": expected at least 1 row of each group, found ", top);
  return top;
}

/** Ranking of a group's best rows; weight 0 if none is relevant. */
bool rank_rows(Span<GroupedRow> group, int64_t top, GroupRanking& ranking) {
  std::vector<std::pair<float, float>> rows;
  rows.reserve(group.size());
  bool is_relevant = false;
  for (const GroupedRow& row : group) {
    rows.emplace_back(row.logit, row.label);
    is_relevant |= row.label != 0;
  }
  if (is_relevant) ranking = rank_group(rows, static_cast<size_t>(top));
  return is_relevant;
}

}  // namespace

bool operator<(const GroupedRow& a, const GroupedRow& b) {
  if (a.group != b.group) return a.group < b.group;
  // By bits: a NaN has a place too. By all of them: sums then do not depend on the order in which rows came.
  const auto key = [](const GroupedRow& row) {
    return std::tuple(ordered_bits(row.logit), ordered_bits(row.label), ordered_bits(row.weight));
  };
  return key(a) < key(b);
}

void GroupMean::add_rows(const MetricRows& rows) {
  for (size_t i = 0; i < rows.logits.size(); ++i) {
    has_nan_ |= std::isnan(rows.logits[i]);
    rows_.push_back({rows.groups[i], rows.logits[i], rows.labels[i], rows.weights.empty() ? 1.0f : rows.weights[i]});
  }
}

double GroupMean::value() {
  if (has_nan_) return std::numeric_limits<double>::quiet_NaN();
  std::sort(rows_.begin(), rows_.end());
  double sum = 0, weights = 0;
  for (size_t first = 0; first < rows_.size();) {
    size_t end = first;
    while (end < rows_.size() && rows_[end].group == rows_[first].group) ++end;
    const Share share = share_of({rows_.data() + first, end - first});
    if (share.weight > 0) {
      sum += share.weight * share.value;
      weights += share.weight;
    }
    first = end;
  }
  return weights > 0 ? sum / weights : std::numeric_limits<double>::quiet_NaN();
}

void GroupMean::reset() {
  rows_.clear();
  has_nan_ = false;
}

void GroupMean::write_state(std::string& bytes) const {
  bytes.reserve(bytes.size() + (rows_.size() + 3) * kRowBytes);
  put(bytes, static_cast<uint8_t>(has_nan_));
  put(bytes, static_cast<uint64_t>(rows_.size()));
  for (const GroupedRow& row : rows_) {
    put(bytes, row.group);
    for (const float value : {row.logit, row.label, row.weight}) put(bytes, value);
  }
}

void GroupMean::merge_state(ByteCursor& bytes) {
  const bool has_nan = read_flag(bytes, "NaN flag");
  const size_t count = bytes.check_count(bytes.read<uint64_t>("number of rows"), kRowBytes, "rows");
  std::vector<GroupedRow> rows(count);
  for (GroupedRow& row : rows) {
    row.group = bytes.read<int64_t>("group");
    for (float* const value : {&row.logit, &row.label, &row.weight}) *value = bytes.read<float>("row");
    if (!has_nan && std::isnan(row.logit)) bytes.fail("a logit", "NaN");
    if (!std::isfinite(row.label)) bytes.fail("a finite label", format_double(static_cast<double>(row.label)));
    if (!std::isfinite(row.weight) || !(row.weight > 0)) bytes.fail("a weight above 0", format_double(row.weight));
  }
  bytes.expect_end("the rows");
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  has_nan_ |= has_nan;
}

GroupMean::Share GroupAuc::share_of(Span<GroupedRow> group) const {
  PairCounter counter;
  double weight = 0;
  for (const GroupedRow& row : group) {
    counter.add(ordered_bits(row.logit), row.label > 0.5f, static_cast<double>(row.weight));
    weight += static_cast<double>(row.weight);
  }
  const double auc = counter.auc();
  return std::isnan(auc) ? Share() : Share{auc, weight};
}

HitRateAt::HitRateAt(int64_t top) : top_(checked_top(top, "hit_rate@K")), name_("hit_rate@" + std::to_string(top)) {}

GroupMean::Share HitRateAt::share_of(Span<GroupedRow> group) const {
  GroupRanking ranking;
  if (!rank_rows(group, top_, ranking)) return {};
  return {ranking.is_hit ? 1.0 : 0.0, 1};
}

NdcgAt::NdcgAt(int64_t top) : top_(checked_top(top, "ndcg@K")), name_("ndcg@" + std::to_string(top)) {}

GroupMean::Share NdcgAt::share_of(Span<GroupedRow> group) const {
  GroupRanking ranking;
  if (!rank_rows(group, top_, ranking)) return {};
  return {ranking.ndcg, 1};
}

}  // namespace tercel::recsys
