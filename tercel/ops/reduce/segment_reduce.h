// Reductions of consecutive segments of a dimension.
#pragma once

#include <optional>
#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Splits dimension `axis` of data into segments and reduces each ("sum", "mean", "max", "min", "prod"). Either the
 * segments' lengths are given, or their offsets followed by the end. The last dimension of lengths (offsets) lists
 * segments; its leading dimensions are the `axis` dimensions of data before `axis`. An empty segment gives `initial`,
 * or 0, NaN, -inf, inf, 1 respectively; other segments begin with `initial`, if given. Lengths must add up to the
 * dimension; `unsafe` skips that check. data is floating; RuntimeError or ValueError as in PyTorch.
 */
TERCEL_API Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& lengths = Tensor(),
                                 const Tensor& indices = Tensor(), const Tensor& offsets = Tensor(), int64_t axis = 0,
                                 bool unsafe = false, std::optional<double> initial = std::nullopt);

}  // namespace tercel
