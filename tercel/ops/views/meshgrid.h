// Grids, Cartesian products and combinations of vectors. Names, defaults and errors are PyTorch's.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Views of n vectors (or scalars) expanded to a common shape: tensor i varies only along dimension i. Indexing "xy"
 * swaps the first two dimensions, as in plots. RuntimeError unless all have the same dtype and device.
 */
TERCEL_OP_API(python_hidden, keyword = indexing)
std::vector<Tensor> meshgrid(Span<Tensor> tensors, std::string_view indexing = "ij");
/** Cartesian product of vectors, one tuple per row, the last element varying fastest; a single vector as is. */
TERCEL_OP_API(python_hidden) Tensor cartesian_prod(Span<Tensor> tensors);
/** All combinations of r elements of a vector in their order, one per row; with replacement, elements may repeat. */
TERCEL_OP_API(python) Tensor combinations(const Tensor& x, int64_t r = 2, bool with_replacement = false);
/** Vandermonde matrix: columns are the powers N - 1 to 0 of a vector, or increasing powers; N defaults to its size. */
TERCEL_API Tensor vander(const Tensor& x, std::optional<int64_t> n = std::nullopt, bool increasing = false);

}  // namespace tercel
