// The different elements, or slices, of a tensor. NaN differs from everything, itself too; both zeros are the same.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

struct UniqueValues {
  Tensor values;   ///< [m], or m slices along dim
  Tensor inverse;  ///< int64: which of the values each element (of x's sizes) or slice ([x.size(dim)]) is
  Tensor counts;   ///< [m] int64: how often each came
};
/**
 * The different values in ascending order; with a dim the different slices, in lexicographic order. Of equal ones the
 * first stands for all. Inverse and counts where asked for. RuntimeError for empty slices.
 */
TERCEL_API UniqueValues unique(const Tensor& x, bool return_inverse = false, bool return_counts = false,
                               std::optional<int64_t> dim = std::nullopt);
/** The first of each run of equal values (in row-major order), or slices. */
TERCEL_API UniqueValues unique_consecutive(const Tensor& x, bool return_inverse = false, bool return_counts = false,
                                           std::optional<int64_t> dim = std::nullopt);

}  // namespace tercel
