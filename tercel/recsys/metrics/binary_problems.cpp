#include "tercel/recsys/metrics/binary_problems.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tercel::recsys {

namespace {

/** ln(p / (1 - p)) of a softmax's element: its logit minus the logarithm of the others' sum of exponentials. */
double logit_against_others(Span<float> row, size_t chosen) {
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < row.size(); ++i)
    if (i != chosen) largest = std::max(largest, static_cast<double>(row[i]));
  if (std::isinf(largest)) return static_cast<double>(row[chosen]) - largest;
  double sum = 0;
  for (size_t i = 0; i < row.size(); ++i)
    if (i != chosen) sum += std::exp(static_cast<double>(row[i]) - largest);
  return static_cast<double>(row[chosen]) - largest - std::log(sum);
}

/** Whether the label of a class, or its share, is that of class `chosen`. */
float label_of_class(const Head& head, Span<float> labels, size_t chosen) {
  if (head.label_columns != 1) return labels[chosen];
  const double number = static_cast<double>(labels[0]);
  const size_t found = head.columns == 2 ? (number >= 0.5 ? 1 : 0) : static_cast<size_t>(std::max(number, 0.0));
  return found == chosen ? 1.0f : 0.0f;
}

}  // namespace

int64_t count_binary_problems(const Head& head) {
  switch (head.kind) {
    case LossKind::Binary: return 1;
    case LossKind::Columns: return head.columns;
    case LossKind::Classes: return head.columns == 2 ? 1 : head.columns;
  }
  return 1;
}

std::vector<BinaryRows> binary_problems(const Head& head, Span<float> logits, Span<float> labels) {
  std::vector<BinaryRows> all(static_cast<size_t>(count_binary_problems(head)));
  const auto width = static_cast<size_t>(head.columns), label_width = static_cast<size_t>(head.label_columns);
  for (size_t row = 0; row * width < logits.size(); ++row) {
    const Span<float> of_row(logits.data() + row * width, width);
    const Span<float> label(labels.data() + row * label_width, label_width);
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t chosen = all.size() == width ? i : width - 1;  // of two classes the second
      const bool of_classes = head.kind == LossKind::Classes;
      if (!of_classes && static_cast<double>(label[chosen]) < kUnknownLabel) continue;
      all[i].logits.push_back(of_classes ? static_cast<float>(logit_against_others(of_row, chosen)) : of_row[chosen]);
      all[i].labels.push_back(of_classes ? label_of_class(head, label, chosen) : label[chosen]);
    }
  }
  return all;
}

}  // namespace tercel::recsys
