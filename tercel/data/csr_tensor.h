// The keys of bags as a sparse matrix.
#pragma once

#include <cstdint>

#include "tercel/core/tensor.h"
#include "tercel/data/batch.h"
#include "tercel/util/export.h"

namespace tercel::data {

/**
 * A tensor [bags, num_keys] of layout sparse_csr: row i has, in the column of each key of bag i, the key's weight, or 1
 * where key_weights is undefined. Its product with the rows of a table is the sum combiner. Row offsets [bags + 1],
 * keys [nnz] (both i32 or i64) and weights [nnz] are its parts, not copies; only weights of 1, of dtype f32, are new.
 * As in the bag, keys of a row are not sorted and may repeat: ops that need sorted, distinct columns need another
 * tensor. RuntimeError for tensors of other sizes or dtypes, not on the CPU, or that require a gradient; IndexError for
 * a key outside [0, num_keys), and for row offsets that do not rise from 0 to nnz.
 */
TERCEL_API Tensor csr_tensor(const Tensor& row_offsets, const Tensor& keys, const Tensor& key_weights,
                             int64_t num_keys);
/** The same of a batch's input, in either order of bags. */
TERCEL_API Tensor csr_tensor(const SparseBatch& batch, int64_t num_keys);

}  // namespace tercel::data
