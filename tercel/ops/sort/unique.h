// Unique elements, or slices, of a tensor. NaN differs from everything including itself; both zeros are equal.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

struct UniqueValues {
  Tensor values;   ///< [m], or m slices along dim
  Tensor inverse;  ///< int64: index in values of each element (x's sizes) or slice ([x.size(dim)])
  Tensor counts;   ///< [m] int64: number of occurrences
};
/**
 * The unique values in ascending order; with a dim the unique slices, in lexicographic order. Each is represented by
 * its first occurrence. Inverse and counts are computed if requested. RuntimeError for empty slices.
 */
TERCEL_API UniqueValues unique(const Tensor& x, bool return_inverse = false, bool return_counts = false,
                               std::optional<int64_t> dim = std::nullopt);
/** The first of each run of equal values (in row-major order) or slices. */
TERCEL_API UniqueValues unique_consecutive(const Tensor& x, bool return_inverse = false, bool return_counts = false,
                                           std::optional<int64_t> dim = std::nullopt);

}  // namespace tercel
