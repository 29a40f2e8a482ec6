// Reductions over all elements or over some dimensions.
//
// Negative dimensions count from the end; an empty list means all. keepdim keeps reduced dimensions with size 1.
// Results do not depend on the number of threads: the order in which elements are combined depends only on sizes and
// strides. Large sums are pairwise, so that rounding errors grow with the logarithm of the length. 16-bit floats are
// combined in float32. Reductions that compare elements raise NotImplementedError for complex numbers.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/**
 * The sum; int64 for integers and bool, except uint64. 0 for no elements. If a dtype is given, elements are first
 * converted to it, and the result has it; the same holds for the following functions.
 */
TERCEL_OP_API(method, layout_sparse) Tensor sum(const Tensor& x);
TERCEL_API const Tensor& sum_out(const Tensor& out, const Tensor& x);
TERCEL_OP_API(method, out, out_dtype, layout_sparse)
Tensor sum(const Tensor& x, IntSpan dim, bool keepdim = false, ScalarType dtype = ScalarType::Undefined);
/** The sum, ignoring NaN. */
TERCEL_OP_API(method, out, out_dtype)
Tensor nansum(const Tensor& x, IntSpan dim = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined);
/** The mean of floating or complex numbers (RuntimeError for others unless a dtype is given). NaN for no elements. */
TERCEL_OP_API(method) Tensor mean(const Tensor& x);
TERCEL_API const Tensor& mean_out(const Tensor& out, const Tensor& x);
TERCEL_OP_API(method, out, out_dtype)
Tensor mean(const Tensor& x, IntSpan dim, bool keepdim = false, ScalarType dtype = ScalarType::Undefined);
/** The mean, ignoring NaN, of floating-point numbers (RuntimeError). */
TERCEL_OP_API(method, python, out, out_dtype, keyword = dtype)
Tensor nanmean(const Tensor& x, IntSpan dim = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined);
/** The product; int64 for integers and bool, except uint64. 1 for no elements. */
TERCEL_OP_API(method, autocast_f32) Tensor prod(const Tensor& x);
TERCEL_API const Tensor& prod_out(const Tensor& out, const Tensor& x);
TERCEL_OP_API(method, out, out_dtype, autocast_f32)
Tensor prod(const Tensor& x, IntSpan dim, bool keepdim = false, ScalarType dtype = ScalarType::Undefined);

/** The maximum; NaN if there is one. RuntimeError for no elements. Equal elements share the gradient. */
TERCEL_OP_API(method, out_apart) Tensor max(const Tensor& x);
TERCEL_OP_API(method, out_apart) Tensor min(const Tensor& x);
TERCEL_OP_API(method, out) Tensor amax(const Tensor& x, IntSpan dim = {}, bool keepdim = false);
TERCEL_OP_API(method, out) Tensor amin(const Tensor& x, IntSpan dim = {}, bool keepdim = false);

/** The maximum along a dimension and the index of its first occurrence; NaN counts as the maximum. IndexError if the
 * size is 0. */
TERCEL_OP_API(method, out_apart) ValuesAndIndices max(const Tensor& x, int64_t dim, bool keepdim = false);
/** The minimum along a dimension and the index of its first occurrence; NaN counts as the minimum. */
TERCEL_OP_API(method, out_apart) ValuesAndIndices min(const Tensor& x, int64_t dim, bool keepdim = false);
/**
 * The index (int64) of the first occurrence of the maximum along a dimension; without a dimension, the flat index among
 * all elements. NaN counts as the maximum. IndexError for no elements.
 */
TERCEL_OP_API(method, out)
Tensor argmax(const Tensor& x, std::optional<int64_t> dim = std::nullopt, bool keepdim = false);
/** The same for the minimum; NaN counts as the minimum. */
TERCEL_OP_API(method, out)
Tensor argmin(const Tensor& x, std::optional<int64_t> dim = std::nullopt, bool keepdim = false);

struct MinAndMax {
  Tensor min, max;
};
/** amin() and amax() along one dimension, or over all. RuntimeError for no elements. */
TERCEL_OP_API(method, python, out_apart, keyword = dim)
MinAndMax aminmax(const Tensor& x, std::optional<int64_t> dim = std::nullopt, bool keepdim = false);

/** The number of nonzero elements (including NaN), int64. */
TERCEL_OP_API(method, out) Tensor count_nonzero(const Tensor& x, IntSpan dim = {}, bool keepdim = false);
/** Whether any element is nonzero (NaN is); the result is bool, or uint8 for uint8. */
TERCEL_OP_API(method, out, layout_sparse) Tensor any(const Tensor& x);
TERCEL_OP_API(method, out) Tensor any(const Tensor& x, IntSpan dim, bool keepdim = false);
/** Whether all elements are nonzero; the result is bool, or uint8 for uint8. */
TERCEL_OP_API(method, out) Tensor all(const Tensor& x);
TERCEL_OP_API(method, out) Tensor all(const Tensor& x, IntSpan dim, bool keepdim = false);

/** log(sum(exp(x))) without overflow; of integers in float32. -inf for no elements. */
TERCEL_OP_API(method, python, out) Tensor logsumexp(const Tensor& x, IntSpan dim, bool keepdim = false);

}  // namespace tercel
