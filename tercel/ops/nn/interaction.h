// Feature interactions of recommender models. 16-bit floats are calculated in float32.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * mlp [batch, d], emb [batch, slots, d] -> [batch, d + (slots + 1) * slots / 2], plus one column of zeros with `pad`:
 * mlp itself, then the dot products z_i . z_j for i > j (i = 1: j = 0; i = 2: j = 0, 1; ...), where z_0 is the sample's
 * mlp and z_s its embedding in slot s - 1. Without an mlp (undefined), z are the embeddings, and all of them precede
 * the products: [batch, slots * d + slots * (slots - 1) / 2].
 */
TERCEL_API Tensor dot_interaction(const Tensor& mlp, const Tensor& emb, bool pad = false);

/** x [batch, slots * dim] -> [batch, dim]: half of (sum over slots)^2 - sum over slots of squares. */
TERCEL_OP_API(python_nn) Tensor fm_order2(const Tensor& x, int64_t dim);

}  // namespace tercel
