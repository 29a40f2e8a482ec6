// The rows of a head as metrics take them.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/recsys/metrics/metric.h"
#include "tercel/recsys/model/graph.h"

namespace tercel::recsys {

/** What a batch's rows have besides logits and labels; each is of all rows, or empty. */
struct RowContext {
  Span<float> weights = {};
  Span<int64_t> groups = {};  ///< for the metrics that need them
  Span<int64_t> slices = {};  ///< for slices
};

/**
 * The rows of a head in a batch, in columns whose logit and label are those of one class or of one label.
 *
 * Of a softmax over more than two classes each class is a column, whose logit is the logarithm of its odds: the sigmoid
 * of it is the class's probability. Of two classes, the second is the only column.
 */
class TERCEL_API HeadRows {
 public:
  struct Column {
    MetricRows rows;
    Span<int64_t> slices;
  };

  explicit HeadRows(const Head& head) : head_(head) {}
  HeadRows(HeadRows&&) noexcept = default;

  /**
   * Takes a batch: logits [B, columns] and the labels [B, label_dim] of all heads; floating. Rows without a label are
   * left out. Valid until the next call, as long as the spans. DataError for a class that there is not.
   */
  void set(const Tensor& logits, const Tensor& labels, const RowContext& context);
  /** At least one. */
  const std::vector<Column>& columns() const { return columns_; }
  /** Whether the rows are of more than two classes, of which each row has one. */
  bool has_classes() const { return has_classes_; }
  /** Of such: the logit of each row's own class, with label 1: their cross entropy is that of the softmax. */
  const MetricRows& own_class() const { return own_class_; }
  /** Of such: by how much the logit of each row's own class is above the others, with label 1: positive means right. */
  const MetricRows& margin() const { return margin_; }

 private:
  struct Copy {
    std::vector<float> logits, labels, weights;
    std::vector<int64_t> groups, slices;
    void add(float logit, float label, size_t row, const RowContext& context);
  };
  void set_labels(const RowContext& context);
  void set_classes(const RowContext& context);
  int64_t class_of(int64_t row, int64_t classes) const;

  Head head_;
  Tensor logits_, labels_;    // contiguous, float32: [B, columns]
  std::vector<Copy> copies_;  // of rows that are not as in the tensors
  std::vector<Column> columns_;
  bool has_classes_ = false;
  MetricRows own_class_, margin_;
};

}  // namespace tercel::recsys
