// Reductions: over all elements, or over some dimensions.
//
// Dimensions count from the end when negative; an empty list means all. keepdim leaves them in with size 1. Results do
// not depend on the number of threads: elements are combined in an order that only sizes and strides decide, pairwise
// at the larger scales, so that rounding errors of sums grow with the logarithm of their length. 16-bit floats are
// combined in float32.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/values_and_indices.h"

namespace tercel {

/** The sum; of integers and bool in int64. 0 for no elements. */
TERCEL_API Tensor sum(const Tensor& x);
TERCEL_API Tensor sum(const Tensor& x, IntSpan dims, bool keepdim = false);
/** The arithmetic mean, of floating numbers (TypeError). NaN for no elements. */
TERCEL_API Tensor mean(const Tensor& x);
TERCEL_API Tensor mean(const Tensor& x, IntSpan dims, bool keepdim = false);
/** The product; of integers and bool in int64. 1 for no elements. */
TERCEL_API Tensor prod(const Tensor& x);
TERCEL_API Tensor prod(const Tensor& x, IntSpan dims, bool keepdim = false);
/** Mean square distance from the mean, with n - correction in the place of n. */
TERCEL_API Tensor var(const Tensor& x, IntSpan dims = {}, double correction = 1, bool keepdim = false);

/** The largest; NaN if there is one. ValueError for no elements. Equal ones share the gradient. */
TERCEL_API Tensor max(const Tensor& x);
TERCEL_API Tensor min(const Tensor& x);
TERCEL_API Tensor amax(const Tensor& x, IntSpan dims = {}, bool keepdim = false);
TERCEL_API Tensor amin(const Tensor& x, IntSpan dims = {}, bool keepdim = false);

/** The largest along a dimension, and the first place where it stands; NaN counts as larger. IndexError if the size is
 * 0. */
TERCEL_API ValuesAndIndices max(const Tensor& x, int64_t dim, bool keepdim = false);
/** The smallest along a dimension, and the first place where it stands; NaN counts as smaller. */
TERCEL_API ValuesAndIndices min(const Tensor& x, int64_t dim, bool keepdim = false);
/** Index of the (first) largest in row-major order, int64; NaN counts as larger. */
TERCEL_API Tensor argmax(const Tensor& x);
TERCEL_API Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false);
TERCEL_API Tensor argmin(const Tensor& x);
TERCEL_API Tensor argmin(const Tensor& x, int64_t dim, bool keepdim = false);

/** (sum |x|^p)^(1/p), of floating numbers; p is 1, 2 or infinity (ValueError). */
TERCEL_API Tensor norm(const Tensor& x, double p = 2);
TERCEL_API Tensor norm(const Tensor& x, double p, IntSpan dims, bool keepdim = false);

/** How many are different from zero (NaN is), int64. */
TERCEL_API Tensor count_nonzero(const Tensor& x, IntSpan dims = {}, bool keepdim = false);
/** Whether one is different from zero (NaN is). */
TERCEL_API Tensor any(const Tensor& x);
TERCEL_API Tensor any(const Tensor& x, IntSpan dims, bool keepdim = false);
/** Whether none is zero. */
TERCEL_API Tensor all(const Tensor& x);
TERCEL_API Tensor all(const Tensor& x, IntSpan dims, bool keepdim = false);

}  // namespace tercel
