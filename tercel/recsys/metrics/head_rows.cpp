#include "tercel/recsys/metrics/head_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/metrics/values_impl.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

namespace {

/** The logarithm of the odds of class `c` in a softmax over `n` logits. */
float log_odds(const float* x, int64_t n, int64_t c) {
  double most = -std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < n; ++j)
    if (j != c) most = std::max(most, static_cast<double>(x[j]));
  if (std::isinf(most)) return static_cast<float>(static_cast<double>(x[c]) - most);
  double sum = 0;
  for (int64_t j = 0; j < n; ++j)
    if (j != c) sum += std::exp(static_cast<double>(x[j]) - most);
  return static_cast<float>(static_cast<double>(x[c]) - most - std::log(sum));
}

}  // namespace

void HeadRows::Copy::add(float logit, float label, size_t row, const RowContext& context) {
  logits.push_back(logit);
  labels.push_back(label);
  if (!context.weights.empty()) weights.push_back(context.weights[row]);
  if (!context.groups.empty()) groups.push_back(context.groups[row]);
  if (!context.slices.empty()) slices.push_back(context.slices[row]);
}

void HeadRows::set(const Tensor& logits, const Tensor& labels, const RowContext& context) {
  logits_ = to(logits, kFloat32).contiguous();
  labels_ = to(labels.narrow(1, head_.first_label, head_.label_columns), kFloat32).contiguous();
  columns_.clear();
  copies_.clear();
  has_classes_ = false;
  if (head_.kind == LossKind::Classes) {
    set_classes(context);
  } else {
    const Span<float> all = values_of(labels_);
    const bool is_plain = logits_.size(1) == 1 && labels_.size(1) == 1 &&
                          std::none_of(all.begin(), all.end(), [](float label) { return label < kUnknownLabel; });
    if (is_plain) {
      columns_.push_back({{values_of(logits_), all, context.weights, context.groups}, context.slices});
      return;
    }
    set_labels(context);
  }
  const size_t extra = has_classes_ ? 2 : 0;
  const auto rows_of = [](const Copy& copy) { return MetricRows{copy.logits, copy.labels, copy.weights, copy.groups}; };
  for (size_t c = 0; c + extra < copies_.size(); ++c) columns_.push_back({rows_of(copies_[c]), copies_[c].slices});
  if (!has_classes_) return;
  own_class_ = rows_of(copies_[copies_.size() - 2]);
  margin_ = rows_of(copies_.back());
}

/** A column for each label. */
void HeadRows::set_labels(const RowContext& context) {
  const int64_t rows = logits_.size(0), columns = logits_.size(1);
  TERCEL_CHECK(labels_.size(1) == columns, RuntimeError, "metrics: head '", head_.name, "': expected ", columns,
               " labels of a row, as it has logits, found ", labels_.size(1));
  copies_.resize(static_cast<size_t>(columns));
  const float *const x = logits_.data<float>(), *const y = labels_.data<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      if (const float label = y[r * columns + c]; label >= kUnknownLabel)
        copies_[static_cast<size_t>(c)].add(x[r * columns + c], label, static_cast<size_t>(r), context);
}

/** A column for each class, or one of two. */
void HeadRows::set_classes(const RowContext& context) {
  const int64_t rows = logits_.size(0), classes = logits_.size(1);
  TERCEL_CHECK(classes >= 2 && (labels_.size(1) == 1 || labels_.size(1) == classes), RuntimeError, "metrics: head '",
               head_.name, "': expected logits of at least 2 classes, and a label or one for each class, found ",
               classes, " logits and ", labels_.size(1), " labels");
  has_classes_ = classes > 2;
  copies_.resize(has_classes_ ? static_cast<size_t>(classes) + 2 : 1);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t own = class_of(r, classes);
    if (own < 0) continue;
    const float* const x = logits_.data<float>() + r * classes;
    const auto row = static_cast<size_t>(r);
    if (!has_classes_) {
      copies_[0].add(x[1] - x[0], own == 1 ? 1.0f : 0.0f, row, context);
      continue;
    }
    float others = -std::numeric_limits<float>::infinity();
    for (int64_t c = 0; c < classes; ++c) {
      const float odds = log_odds(x, classes, c);
      copies_[static_cast<size_t>(c)].add(odds, c == own ? 1.0f : 0.0f, row, context);
      if (c == own) copies_[static_cast<size_t>(classes)].add(odds, 1.0f, row, context);
      if (c != own) others = std::isnan(x[c]) ? x[c] : std::max(others, x[c]);
    }
    copies_.back().add(x[own] - others, 1.0f, row, context);
  }
}

/** The class of a row; -1 if it has no label. */
int64_t HeadRows::class_of(int64_t row, int64_t classes) const {
  const float* const y = labels_.data<float>() + row * labels_.size(1);
  if (labels_.size(1) > 1) return std::max_element(y, y + classes) - y;
  if (y[0] < kUnknownLabel) return -1;
  if (classes == 2) return y[0] < 0.5f ? 0 : 1;
  const int64_t own = std::lround(y[0]);
  TERCEL_CHECK(own < classes, DataError, "metrics: head '", head_.name, "': expected a class below ", classes,
               " as the label, found ", static_cast<double>(y[0]));
  return own;
}

}  // namespace tercel::recsys
