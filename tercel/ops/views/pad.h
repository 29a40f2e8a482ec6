// Padding.
#pragma once

#include <optional>
#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * x with pad[0] elements before and pad[1] after its last dimension, pad[2] and pad[3] around the one before it, and so
 * on; negative numbers remove elements. The mode determines the padding: "constant" is the value (default 0, any number
 * of dimensions), "reflect" x mirrored at its first and last element, "replicate" these elements, "circular" x from the
 * opposite end. The latter three pad the last 1, 2 or 3 dimensions of a tensor with one or two more
 * (NotImplementedError for others). Names and errors are PyTorch's.
 */
TERCEL_API Tensor pad(const Tensor& x, IntSpan pad, std::string_view mode = "constant",
                      std::optional<Scalar> value = std::nullopt);
/** pad() in constant mode. */
TERCEL_OP_API(python) Tensor constant_pad_nd(const Tensor& x, IntSpan pad, Scalar value = 0);

}  // namespace tercel
