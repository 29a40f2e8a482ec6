// Embedding lookup: rows of a table, selected by index. embedding_bag.h adds them up in bags.
//
// Row gradients have one entry per lookup, in the order of the lookups: see UniqueRows in row_gradient.h.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * weight [rows, dim], indices of any shape (int32 or int64) -> [..., dim]. IndexError for an index outside the rows.
 * scale_grad_by_freq divides the gradient of a row by the number of its lookups; dense gradients only.
 */
TERCEL_API Tensor embedding(const Tensor& weight, const Tensor& indices, std::optional<int64_t> padding_idx = {},
                            bool sparse = false, bool scale_grad_by_freq = false);
/** Scales the rows that `indices` names and whose p-norm exceeds max_norm down to that norm, in place. */
TERCEL_API const Tensor& embedding_renorm_(const Tensor& weight, const Tensor& indices, double max_norm,
                                           double norm_type = 2);

}  // namespace tercel
