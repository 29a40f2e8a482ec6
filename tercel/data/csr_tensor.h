// The keys of a batch as a sparse matrix.
#pragma once

#include <cstdint>

#include "tercel/core/tensor.h"
#include "tercel/data/batch.h"
#include "tercel/util/export.h"

namespace tercel::data {

/**
 * A tensor [bags, num_keys] of layout sparse_csr and dtype f32: row i has the weight of each key of bag i, 1 without
 * weights, in the key's column. Its product with the rows of a table is the sum combiner. Row offsets, keys and weights
 * are the batch's own tensors; only weights of 1 are new. As in the bag, keys of a row are not sorted and may repeat:
 * ops that need sorted, distinct columns need another tensor. IndexError for a key outside [0, num_keys).
 */
TERCEL_API Tensor csr_tensor(const SparseBatch& batch, int64_t num_keys);

}  // namespace tercel::data
