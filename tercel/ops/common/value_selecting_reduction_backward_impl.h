// Recording of ops whose results are elements selected along a dimension: extrema, sorted elements, medians.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Records `values`, the elements of x at `indices` along `dim`, as the result of an op. Without `keepdim`, values and
 * indices lack that dimension. Backward scatters gradients to the selected elements.
 */
void record_value_selecting_reduction(const char* name, const Tensor& values, const Tensor& x, const Tensor& indices,
                                      int64_t dim, bool keepdim);

}  // namespace tercel
