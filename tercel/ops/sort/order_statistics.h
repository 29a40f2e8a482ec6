// Elements chosen by their rank along a dimension. NaN is larger than all numbers; of equal elements the first ones are
// taken first. IndexError for a dimension of size 0.
#pragma once

#include <optional>
#include <string_view>

#include "tercel/core/tensor.h"
#include "tercel/ops/common/values_and_indices.h"

namespace tercel {

/** The k largest (or smallest) along a dimension, best first if `sorted`. RuntimeError if there are not k. */
TERCEL_OP_API(method, python, out_apart)
ValuesAndIndices topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true);
/** The k-th smallest along a dimension, counted from 1. RuntimeError if there is none. */
TERCEL_OP_API(method, python, out_apart)
ValuesAndIndices kthvalue(const Tensor& x, int64_t k, int64_t dim = -1, bool keepdim = false);

/** The lower of the elements in the middle; NaN if there is one, and for no elements. Equal ones share the gradient. */
TERCEL_OP_API(method, python, out, no_python_out) Tensor median(const Tensor& x);
TERCEL_OP_API(method, python, out) ValuesAndIndices median(const Tensor& x, int64_t dim, bool keepdim = false);
/** The median of what is not NaN; NaN if nothing is. */
TERCEL_OP_API(method, python, out, no_python_out) Tensor nanmedian(const Tensor& x);
TERCEL_OP_API(method, python, out) ValuesAndIndices nanmedian(const Tensor& x, int64_t dim, bool keepdim = false);
/** The smallest of the values that come most often along a dimension, and the last place where it stands. */
TERCEL_OP_API(method, out_apart) ValuesAndIndices mode(const Tensor& x, int64_t dim = -1, bool keepdim = false);

/**
 * The elements at rank q * (n - 1) in order along a dimension (all: as one), for each q in [0, 1]: a number, or a
 * vector of x's dtype, whose results are put along a new first dimension. Between two ranks interpolation is "linear",
 * "lower", "higher", "midpoint" or "nearest". x is float32 or float64 (RuntimeError). NaN if there is one.
 */
TERCEL_OP_API(method, out, autocast_f32)
Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                std::string_view interpolation = "linear");
TERCEL_OP_API(method, out, autocast_f32)
Tensor quantile(const Tensor& x, double q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                std::string_view interpolation = "linear");
/** quantile() of what is not NaN; NaN if nothing is. */
TERCEL_OP_API(method, out, autocast_f32)
Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                   std::string_view interpolation = "linear");
TERCEL_OP_API(method, out, autocast_f32)
Tensor nanquantile(const Tensor& x, double q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                   std::string_view interpolation = "linear");

}  // namespace tercel
