// Sorting along a dimension. Equal elements keep their original order; NaN is larger than all numbers.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/** The elements in sorted order along a dimension, and their original indices. */
TERCEL_OP_API(method, out_apart) ValuesAndIndices sort(const Tensor& x, int64_t dim = -1, bool descending = false);
/** The indices that sort a dimension, int64. */
TERCEL_OP_API(method, out) Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false);
/** sort() along the first dimension, values only. */
TERCEL_OP_API(method, python, out_apart) Tensor msort(const Tensor& x);

}  // namespace tercel
