// What a head's logits mean.
#pragma once

#include <cstdint>

namespace tercel::recsys {

/** What is predicted by the logits of a head. */
enum class LossKind : uint8_t {
  Binary,   ///< [B, 1]: the sigmoid is the probability that the label [B, 1] is 1
  Columns,  ///< [B, n]: the same for each column of the labels [B, n]; a label below -0.5 is unknown
  Classes,  ///< [B, n]: the softmax has the probability of each class; labels are numbers [B, 1] or shares [B, n]
};

/** A label of LossKind::Columns below this is unknown. */
constexpr double kUnknownLabel = -0.5;

}  // namespace tercel::recsys
