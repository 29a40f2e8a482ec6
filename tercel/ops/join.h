// Tensors put together, and taken apart into copies.
#pragma once

#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Tensors one after the other along a dimension; all others agree (ValueError). Dtypes are promoted; empty vectors (of
 * sizes [0]) are passed over.
 */
TERCEL_API Tensor cat(Span<Tensor> tensors, int64_t dim = 0);
/** Tensors of the same sizes along a new dimension. */
TERCEL_API Tensor stack(Span<Tensor> tensors, int64_t dim = 0);

/** Copies of the pieces that split() would view. */
TERCEL_API std::vector<Tensor> split_copy(const Tensor& x, int64_t split_size, int64_t dim = 0);
TERCEL_API std::vector<Tensor> split_copy(const Tensor& x, IntSpan sizes, int64_t dim = 0);

}  // namespace tercel
