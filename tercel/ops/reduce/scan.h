// Cumulative sums, products and extrema along a dimension.
//
// out[i] combines x[0] to x[i]. Sums and products of integers and bool are int64 (uint64 for uint64) unless a dtype is
// given, to which x is then converted first. float32 and 16-bit floats are combined in float64 and rounded once per
// element. Results do not depend on the number of threads. Only sums and products support complex numbers
// (NotImplementedError for the others).
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/** out[i] = x[0] + ... + x[i] along a dimension. The in-place variant keeps x's dtype and accepts no other. */
TERCEL_OP_API(method, python, out_apart, out_dtype, keyword = dtype)
Tensor cumsum(const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined);
TERCEL_OP_API(method, python_method, keyword = dtype)
const Tensor& cumsum_(const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined);
/** out[i] = x[0] * ... * x[i] along a dimension. */
TERCEL_OP_API(method, python, out_apart, out_dtype, keyword = dtype)
Tensor cumprod(const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined);
TERCEL_OP_API(method, python_method, keyword = dtype)
const Tensor& cumprod_(const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined);
/** The maximum of x[0] to x[i] and the index of its last occurrence; NaN from the first NaN on. */
TERCEL_OP_API(method, out) ValuesAndIndices cummax(const Tensor& x, int64_t dim);
/** The minimum of x[0] to x[i] and the index of its last occurrence; NaN from the first NaN on. */
TERCEL_OP_API(method, out) ValuesAndIndices cummin(const Tensor& x, int64_t dim);
/** out[i] = log(exp(x[0]) + ... + exp(x[i])) without overflow, for floating-point numbers (NotImplementedError). */
TERCEL_OP_API(method, out_apart) Tensor logcumsumexp(const Tensor& x, int64_t dim);

}  // namespace tercel
