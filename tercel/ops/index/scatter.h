// Elements written where a tensor of indices (int32 or int64) says.
//
// For dim 0, source[i][j] goes to out[index[i][j]][j], and so on: index has the number of dimensions of x and of
// source, and is no larger than source, nor than x but in dim. Elements that go to one place are taken in the order of
// their positions along dim, so the result does not depend on the number of threads; without a reduction the last one
// stands. An index outside [0, size) is a RuntimeError, and x is then as it was before. The variants without underscore
// work on a copy.
#pragma once

#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel {

/** out[index] = source. */
TERCEL_OP_API(method, out_apart)
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
TERCEL_OP_API(method) const Tensor& scatter_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
/** out[index] = value. */
TERCEL_OP_API(method, out_apart) Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar value);
TERCEL_OP_API(method) const Tensor& scatter_(const Tensor& x, int64_t dim, const Tensor& index, Scalar value);
/** out[index] += src. */
TERCEL_OP_API(method, python, out_apart)
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
TERCEL_OP_API(method, python_method)
const Tensor& scatter_add_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);

enum class ScatterReduction : uint8_t { Sum, Product, Mean, Maximum, Minimum };
/** "sum", "prod", "mean", "amax", "amin"; RuntimeError for another name. */
TERCEL_API ScatterReduction parse_scatter_reduction(std::string_view name);

/**
 * out[index] = the reduction of the elements that go there and, with include_self, of what was there; places that
 * nothing goes to stay as they are. A mean of integers is rounded down.
 */
TERCEL_OP_API(method, out_apart)
Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                      ScatterReduction reduction, bool include_self = true);
TERCEL_OP_API(method)
const Tensor& scatter_reduce_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                              ScatterReduction reduction, bool include_self = true);
/** scatter_reduce() of slices: source[:, i] goes to x[:, index[i]] for dim 1; index is a vector. */
TERCEL_OP_API(method, out_apart)
Tensor index_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, ScatterReduction reduction,
                    bool include_self = true);
TERCEL_OP_API(method)
const Tensor& index_reduce_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                            ScatterReduction reduction, bool include_self = true);

}  // namespace tercel
