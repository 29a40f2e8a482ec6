// Order along a dimension.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/values_and_indices.h"

namespace tercel {

/** Elements of a dimension in order, equal ones in the order in which they stood; NaN is larger than all numbers. */
TERCEL_API ValuesAndIndices sort(const Tensor& x, int64_t dim = -1, bool descending = false);
/** Where the elements of sort() stood, int64. */
TERCEL_API Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false);

struct UniqueValues {
  Tensor values;   ///< [m] ascending
  Tensor inverse;  ///< x's sizes, int64: which of the values each element is
  Tensor counts;   ///< [m] int64: how often each came
};
/** The different values of integers or bool (TypeError); inverse and counts where asked for. */
TERCEL_API UniqueValues unique(const Tensor& x, bool return_inverse = false, bool return_counts = false);

}  // namespace tercel
