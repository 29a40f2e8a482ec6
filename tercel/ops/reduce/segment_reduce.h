// Reductions of consecutive parts of a dimension.
#pragma once

#include <optional>
#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * data's dimension `axis`, cut into segments, each reduced ("sum", "mean", "max", "min", "prod"). Either the segments'
 * lengths are given, or their offsets and, last, the end. The lengths' (offsets') last dimension lists segments;
 * leading dimensions are those of data before `axis`, the number of which is axis. An empty segment is `initial`, or 0,
 * NaN, -inf, inf, 1. With `initial` segments begin with it. Lengths must add up to the dimension unless `unsafe`, which
 * is for callers that know. Floating data; RuntimeError, ValueError where PyTorch has them.
 */
TERCEL_API Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& lengths = Tensor(),
                                 const Tensor& indices = Tensor(), const Tensor& offsets = Tensor(), int64_t axis = 0,
                                 bool unsafe = false, std::optional<double> initial = std::nullopt);

}  // namespace tercel
