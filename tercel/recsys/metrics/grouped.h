// Metrics of rows that belong to groups, such as the rows of a user.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/recsys/metrics/metric.h"

namespace tercel::recsys {

/** A row with its group. */
struct GroupedRow {
  int64_t group = 0;
  float logit = 0, label = 0, weight = 1;
};

/** A total order: by group, then by logit, label and weight; a NaN is at an end of its group. */
TERCEL_API bool operator<(const GroupedRow& a, const GroupedRow& b);

/** The mean of a value of each group, with a weight of each. Keeps 24 bytes for each row. NaN if none has a value. */
class TERCEL_API GroupMean : public Metric {
 public:
  Better better() const final { return Better::Higher; }
  bool needs_groups() const final { return true; }
  double value() final;
  void reset() final;

 protected:
  /** A value with its weight. */
  struct Share {
    double value = 0, weight = 0;
  };

 private:
  /** Of the rows of a group, ascending by logit; weight 0 if it does not count. */
  virtual Share share_of(Span<GroupedRow> group) const = 0;
  void add_rows(const MetricRows& rows) final;
  void write_state(std::string& bytes) const final;
  void merge_state(ByteCursor& bytes) final;

  std::vector<GroupedRow> rows_;
  bool has_nan_ = false;
};

/**
 * The AUC within groups: the mean of the groups' AUCs, weighted by their rows; groups with labels of one class do not
 * count (Zhu et al., "Optimized cost per click in Taobao display advertising", 2017).
 */
class TERCEL_API GroupAuc final : public GroupMean {
 public:
  std::string_view name() const override { return "gauc"; }

 private:
  Share share_of(Span<GroupedRow> group) const override;
};

/**
 * "hit_rate@K": the share of groups with a row of label 1 among their K best. Groups without such a row do not count;
 * of rows with equal logits, those of label 0 come first.
 */
class TERCEL_API HitRateAt final : public GroupMean {
 public:
  /** ConfigError unless top is at least 1. */
  explicit HitRateAt(int64_t top);
  std::string_view name() const override { return name_; }

 private:
  Share share_of(Span<GroupedRow> group) const override;

  int64_t top_;
  std::string name_;
};

/** "ndcg@K": the mean NDCG of the groups' K best rows, with the same rules. */
class TERCEL_API NdcgAt final : public GroupMean {
 public:
  /** ConfigError unless top is at least 1. */
  explicit NdcgAt(int64_t top);
  std::string_view name() const override { return name_; }

 private:
  Share share_of(Span<GroupedRow> group) const override;

  int64_t top_;
  std::string name_;
};

}  // namespace tercel::recsys
