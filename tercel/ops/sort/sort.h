// Order along a dimension. Equal elements stay in the order in which they stood; NaN is larger than all numbers.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/** Elements of a dimension in order, and where they stood. */
TERCEL_OP_API(method, out_apart) ValuesAndIndices sort(const Tensor& x, int64_t dim = -1, bool descending = false);
/** Where the elements of sort() stood, int64. */
TERCEL_OP_API(method, out) Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false);
/** The values of sort() along the first dimension. */
TERCEL_OP_API(method, python, out_apart) Tensor msort(const Tensor& x);

}  // namespace tercel
