// What the rows of a head mean for metrics of binary predictions.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/recsys/model/graph.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

/** Rows of one binary prediction: logits, whose sigmoid is the probability of label 1, and labels. */
struct BinaryRows {
  std::vector<float> logits, labels;
};

/** Binary predictions that a head makes: one; of columns one each; of more than two classes each against all others. */
TERCEL_API int64_t count_binary_problems(const Head& head);

/**
 * The rows of each, of logits [B, head.columns] and labels [B, head.label_columns], row after row. Labels that are
 * unknown are left out. The logit of a class is ln(p / (1 - p)) of its softmax p; a share of a class is its label.
 */
TERCEL_API std::vector<BinaryRows> binary_problems(const Head& head, Span<float> logits, Span<float> labels);

}  // namespace tercel::recsys
