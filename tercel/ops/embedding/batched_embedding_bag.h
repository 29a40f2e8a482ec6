// Bags of rows for all slots of a batch at once.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/embedding/embedding_bag.h"

namespace tercel {

/**
 * Bags of many slots at once: keys [n], row_offsets [batch * slots + 1] -> [batch, slots, dim]. Bag b * slots + s
 * belongs to sample b and slot s. One weight [rows, dim] holds the rows of all slots. Gradients are of rows. The mode
 * is Sum or Mean. IndexError for a key outside the rows.
 */
TERCEL_API Tensor batched_embedding_bag(const Tensor& weight, const Tensor& keys, const Tensor& row_offsets,
                                        int64_t slots, BagMode mode = BagMode::Sum);
/** The same with a weight [rows_s, dim] for each slot; keys are rows of the slot's own weight. */
TERCEL_API Tensor batched_embedding_bag(Span<Tensor> weights, const Tensor& keys, const Tensor& row_offsets,
                                        BagMode mode = BagMode::Sum);

}  // namespace tercel
