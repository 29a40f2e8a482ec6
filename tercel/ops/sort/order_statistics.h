// Elements selected by rank along a dimension. NaN is larger than all numbers; among equal elements the first ones are
// selected. IndexError for a dimension of size 0.
#pragma once

#include <optional>
#include <string_view>

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/** The k largest (or smallest) along a dimension, best first if `sorted`. RuntimeError if there are fewer than k. */
TERCEL_OP_API(method, python, out_apart)
ValuesAndIndices topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true);
/** The k-th smallest along a dimension, counted from 1. RuntimeError if k is out of range. */
TERCEL_OP_API(method, python, out_apart)
ValuesAndIndices kthvalue(const Tensor& x, int64_t k, int64_t dim = -1, bool keepdim = false);

/** The median (the lower of two); NaN if there is one, and for no elements. Equal elements share the gradient. */
TERCEL_OP_API(method, python, out, no_python_out) Tensor median(const Tensor& x);
TERCEL_OP_API(method, python, out) ValuesAndIndices median(const Tensor& x, int64_t dim, bool keepdim = false);
/** The median, ignoring NaN; NaN if all elements are NaN. */
TERCEL_OP_API(method, python, out, no_python_out) Tensor nanmedian(const Tensor& x);
TERCEL_OP_API(method, python, out) ValuesAndIndices nanmedian(const Tensor& x, int64_t dim, bool keepdim = false);
/** The most frequent value along a dimension (the smallest if several are) and the index of its last occurrence. */
TERCEL_OP_API(method, out_apart) ValuesAndIndices mode(const Tensor& x, int64_t dim = -1, bool keepdim = false);

/**
 * The elements at rank q * (n - 1) in sorted order along a dimension (over all elements by default), for each q in [0,
 * 1]: a number, or a vector of x's dtype, whose results form a new first dimension. `interpolation` between two ranks
 * is "linear", "lower", "higher", "midpoint" or "nearest". x is float32 or float64 (RuntimeError). NaN if there is one.
 */
TERCEL_OP_API(method, out, autocast_f32)
Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                std::string_view interpolation = "linear");
TERCEL_OP_API(method, out, autocast_f32)
Tensor quantile(const Tensor& x, double q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                std::string_view interpolation = "linear");
/** quantile(), ignoring NaN; NaN if all elements are NaN. */
TERCEL_OP_API(method, out, autocast_f32)
Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                   std::string_view interpolation = "linear");
TERCEL_OP_API(method, out, autocast_f32)
Tensor nanquantile(const Tensor& x, double q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                   std::string_view interpolation = "linear");

}  // namespace tercel
