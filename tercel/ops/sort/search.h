// Binary search in sorted sequences, and membership tests.
#pragma once

#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * For each value, the insertion index that keeps an ascending sequence sorted: left of equal elements, or right of them
 * if `right` (side "right"). Sequences are the lines of the last dimension: one for all values, or one per line of
 * values with the same leading sizes. `sorter` (int64, the sequences' sizes) gives the order in which the sequences are
 * ascending. The result is int64, or int32 if requested. RuntimeError for mismatched shapes.
 */
TERCEL_OP_API(python, out, keyword = out_int32)
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& input, bool out_int32 = false, bool right = false,
                    std::string_view side = {}, const Tensor& sorter = Tensor());
TERCEL_OP_API(python, out, keyword = out_int32)
Tensor searchsorted(const Tensor& sorted_sequence, Scalar input, bool out_int32 = false, bool right = false,
                    std::string_view side = {}, const Tensor& sorter = Tensor());
/** searchsorted() of the values in a vector of boundaries. */
TERCEL_OP_API(python, out, keyword = out_int32)
Tensor bucketize(const Tensor& input, const Tensor& boundaries, bool out_int32 = false, bool right = false);
TERCEL_OP_API(python, out, keyword = out_int32)
Tensor bucketize(Scalar input, const Tensor& boundaries, bool out_int32 = false, bool right = false);

/** Whether each element is (or, with `invert`, is not) among the test elements. NaN never is. */
TERCEL_OP_API(out_apart)
Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique = false, bool invert = false);
TERCEL_OP_API(out_apart)
Tensor isin(const Tensor& elements, Scalar test_element, bool assume_unique = false, bool invert = false);
TERCEL_OP_API(out_apart)
Tensor isin(Scalar element, const Tensor& test_elements, bool assume_unique = false, bool invert = false);

}  // namespace tercel
