// Embedding bags of all slots of a batch in one call.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/embedding/embedding_bag.h"

namespace tercel {

/**
 * Embedding bags of many slots: keys [n], row_offsets [batch * slots + 1] -> [batch, slots, dim]. Bag b * slots + s
 * belongs to sample b and slot s. A single weight [rows, dim] holds the rows of all slots. Gradients are row gradients,
 * whose rows may be the tensor of keys itself: it must not change before the gradients are used.
 * The mode is Sum or Mean. With key_weights [n], of the weight's dtype, each row is multiplied by its key's weight;
 * Mean then divides by the sum of the bag's weights, if that is not 0. IndexError for a key outside the rows.
 */
TERCEL_API Tensor batched_embedding_bag(const Tensor& weight, const Tensor& keys, const Tensor& row_offsets,
                                        int64_t slots, BagMode mode = BagMode::Sum, const Tensor& key_weights = {});
/** The same with one weight [rows_s, dim] per slot; keys index the rows of their slot's weight. */
TERCEL_API Tensor batched_embedding_bag(Span<Tensor> weights, const Tensor& keys, const Tensor& row_offsets,
                                        BagMode mode = BagMode::Sum);

}  // namespace tercel
