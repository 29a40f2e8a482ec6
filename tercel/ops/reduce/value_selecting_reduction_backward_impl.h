// Results that are elements of an input, picked along a dimension: extremes, sorted elements, medians.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * Records `values`, which are the elements of x that `indices` names along `dim`, as the result of an op. Without
 * `keepdim` values and indices lack that dimension. Gradients go where the elements came from.
 */
void record_value_selecting_reduction(const char* name, const Tensor& values, const Tensor& x, const Tensor& indices,
                                      int64_t dim, bool keepdim);

}  // namespace tercel
