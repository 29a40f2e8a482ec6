// Grids and lists of combinations made of vectors. Names, defaults and errors are PyTorch's.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Views of n vectors (or scalars) expanded to one shape: tensor i changes along dimension i alone. With indexing "xy"
 * the first two dimensions change places, as in plots. RuntimeError unless all are of one dtype and device.
 */
TERCEL_OP_API(python_hidden, keyword = indexing)
std::vector<Tensor> meshgrid(Span<Tensor> tensors, std::string_view indexing = "ij");
/** All tuples with one element of each vector, one a row, the last changing fastest. Of one vector: it. */
TERCEL_OP_API(python_hidden) Tensor cartesian_prod(Span<Tensor> tensors);
/** All choices of r elements of a vector in their order, one a row; each as often as wanted, with replacement. */
TERCEL_OP_API(python) Tensor combinations(const Tensor& x, int64_t r = 2, bool with_replacement = false);
/** Powers of a vector's elements as columns: the N - 1st to the 0th, or increasing; N defaults to its size. */
TERCEL_API Tensor vander(const Tensor& x, std::optional<int64_t> n = std::nullopt, bool increasing = false);

}  // namespace tercel
