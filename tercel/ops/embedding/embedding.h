// Rows of a table, looked up by index. embedding_bag.h adds them up in bags.
//
// Gradients of rows hold one entry a lookup, in the order of the lookups: see UniqueRows in row_gradient.h.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * weight [rows, dim], indices of any sizes (int32 or int64) -> [..., dim]. IndexError for one outside the rows.
 * scale_grad_by_freq divides the gradient of a row by how often it was looked up; for dense gradients only.
 */
TERCEL_API Tensor embedding(const Tensor& weight, const Tensor& indices, std::optional<int64_t> padding_idx = {},
                            bool sparse = false, bool scale_grad_by_freq = false);
/** Rows of the weight that are looked up and whose p-norm exceeds max_norm get that norm. */
TERCEL_API const Tensor& embedding_renorm_(const Tensor& weight, const Tensor& indices, double max_norm,
                                           double norm_type = 2);

}  // namespace tercel
