// Reductions: over all elements, or over some dimensions.
//
// Dimensions count from the end when negative; an empty list means all. keepdim leaves them in with size 1. Results do
// not depend on the number of threads: elements are combined in an order that only sizes and strides decide, pairwise
// at the larger scales, so that rounding errors of sums grow with the logarithm of their length. 16-bit floats are
// combined in float32. What has an order in it is a NotImplementedError for complex numbers.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/**
 * The sum; of integers and bool in int64, of uint64 in that. 0 for no elements. With a dtype, elements are converted to
 * it first, and it is the result's; so for the next ones.
 */
TERCEL_OP_API(method) Tensor sum(const Tensor& x);
TERCEL_API const Tensor& sum_out(const Tensor& out, const Tensor& x);
TERCEL_OP_API(method, out, out_dtype)
Tensor sum(const Tensor& x, IntSpan dim, bool keepdim = false, ScalarType dtype = ScalarType::Undefined);
/** The sum of what is not NaN. */
TERCEL_OP_API(method, out, out_dtype)
Tensor nansum(const Tensor& x, IntSpan dim = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined);
/** The arithmetic mean, of floating and complex numbers (RuntimeError) or in such a dtype. NaN for no elements. */
TERCEL_OP_API(method) Tensor mean(const Tensor& x);
TERCEL_API const Tensor& mean_out(const Tensor& out, const Tensor& x);
TERCEL_OP_API(method, out, out_dtype)
Tensor mean(const Tensor& x, IntSpan dim, bool keepdim = false, ScalarType dtype = ScalarType::Undefined);
/** The mean of what is not NaN, of floating numbers (RuntimeError). */
TERCEL_OP_API(method, python, out, out_dtype, keyword = dtype)
Tensor nanmean(const Tensor& x, IntSpan dim = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined);
/** The product; of integers and bool in int64, of uint64 in that. 1 for no elements. */
TERCEL_OP_API(method, autocast_f32) Tensor prod(const Tensor& x);
TERCEL_API const Tensor& prod_out(const Tensor& out, const Tensor& x);
TERCEL_OP_API(method, out, out_dtype, autocast_f32)
Tensor prod(const Tensor& x, IntSpan dim, bool keepdim = false, ScalarType dtype = ScalarType::Undefined);

/** The largest; NaN if there is one. RuntimeError for no elements. Equal ones share the gradient. */
TERCEL_OP_API(method, out_apart) Tensor max(const Tensor& x);
TERCEL_OP_API(method, out_apart) Tensor min(const Tensor& x);
TERCEL_OP_API(method, out) Tensor amax(const Tensor& x, IntSpan dim = {}, bool keepdim = false);
TERCEL_OP_API(method, out) Tensor amin(const Tensor& x, IntSpan dim = {}, bool keepdim = false);

/** The largest along a dimension, and the first place where it stands; NaN counts as larger. IndexError if the size is
 * 0. */
TERCEL_OP_API(method, out_apart) ValuesAndIndices max(const Tensor& x, int64_t dim, bool keepdim = false);
/** The smallest along a dimension, and the first place where it stands; NaN counts as smaller. */
TERCEL_OP_API(method, out_apart) ValuesAndIndices min(const Tensor& x, int64_t dim, bool keepdim = false);
/**
 * Where the (first) largest along a dimension stands, int64; without one, its number in row-major order. NaN counts as
 * larger. IndexError where there are no elements.
 */
TERCEL_OP_API(method, out)
Tensor argmax(const Tensor& x, std::optional<int64_t> dim = std::nullopt, bool keepdim = false);
/** The same for the smallest; NaN counts as smaller. */
TERCEL_OP_API(method, out)
Tensor argmin(const Tensor& x, std::optional<int64_t> dim = std::nullopt, bool keepdim = false);

struct MinAndMax {
  Tensor min, max;
};
/** amin() and amax() of one dimension, or of all. RuntimeError for no elements. */
TERCEL_OP_API(method, python, out_apart, keyword = dim)
MinAndMax aminmax(const Tensor& x, std::optional<int64_t> dim = std::nullopt, bool keepdim = false);

/** How many are different from zero (NaN is), int64. */
TERCEL_OP_API(method, out) Tensor count_nonzero(const Tensor& x, IntSpan dim = {}, bool keepdim = false);
/** Whether one is different from zero (NaN is); bool, of uint8 uint8. */
TERCEL_OP_API(method, out) Tensor any(const Tensor& x);
TERCEL_OP_API(method, out) Tensor any(const Tensor& x, IntSpan dim, bool keepdim = false);
/** Whether none is zero; bool, of uint8 uint8. */
TERCEL_OP_API(method, out) Tensor all(const Tensor& x);
TERCEL_OP_API(method, out) Tensor all(const Tensor& x, IntSpan dim, bool keepdim = false);

}  // namespace tercel
