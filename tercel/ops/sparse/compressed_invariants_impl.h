#pragma once

#include <cstdint>

#include "tercel/core/tensor.h"

namespace tercel::sparse_ops {

/**
 * RuntimeError, in PyTorch's words, unless offsets [*batch, compressed_size + 1] rise from 0 to nnz, and the plain
 * indices
 * [*batch, nnz] of each row (column, unless `by_rows`) are below plain_size and ascend. Reads each index once.
 */
void check_compressed_indices(const Tensor& offsets, const Tensor& plain, int64_t compressed_size, int64_t plain_size,
                              bool by_rows);

}  // namespace tercel::sparse_ops
