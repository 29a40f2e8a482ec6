// Embeddings that no kernel calculates.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

/** Rows of a table of integers or complex numbers; that of the padding gets no gradient. */
Tensor plain_embedding(const Tensor& weight, const Tensor& indices, std::optional<int64_t> padding_idx);

}  // namespace tercel
