// Elements written to positions given by an index tensor (int32 or int64).
//
// For dim 0, source[i][j] goes to out[index[i][j]][j], and so on: index has the number of dimensions of x and source,
// and no larger sizes than source and, except in dim, than x. Elements with the same target are combined in the order
// of their positions along dim, so the result does not depend on the number of threads; without a reduction the last
// one wins. An index outside [0, size) is a RuntimeError, and x is then unchanged. Variants without underscore work on
// a copy.
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
/** Parses "sum", "prod", "mean", "amax" or "amin"; RuntimeError for other names. */
TERCEL_API ScatterReduction parse_scatter_reduction(std::string_view name);

/**
 * out[index] = the reduction of all elements scattered there and, with include_self, of the original element; other
 * elements are unchanged. The mean of integers is rounded down.
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
