// Places of values in sorted sequences, and membership.
#pragma once

#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * For each value the place in an ascending sequence where it would have to be put: before its equals, or after them if
 * `right` (side "right"). Sequences are the lines of the last dimension: one for all values, or one for each line of
 * values of the same leading sizes. `sorter` (int64, the sequences' sizes) says in which order the sequences are
 * ascending. int64, or int32 if asked for. RuntimeError for shapes that do not fit.
 */
TERCEL_OP_API(python, out, keyword = out_int32)
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& input, bool out_int32 = false, bool right = false,
                    std::string_view side = {}, const Tensor& sorter = Tensor());
TERCEL_OP_API(python, out, keyword = out_int32)
Tensor searchsorted(const Tensor& sorted_sequence, Scalar input, bool out_int32 = false, bool right = false,
                    std::string_view side = {}, const Tensor& sorter = Tensor());
/** searchsorted() of the values in the vector of boundaries. */
TERCEL_OP_API(python, out, keyword = out_int32)
Tensor bucketize(const Tensor& input, const Tensor& boundaries, bool out_int32 = false, bool right = false);
TERCEL_OP_API(python, out, keyword = out_int32)
Tensor bucketize(Scalar input, const Tensor& boundaries, bool out_int32 = false, bool right = false);

/** Whether each element is (not, if `invert`) among the test elements. NaN never is. */
TERCEL_OP_API(out_apart)
Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique = false, bool invert = false);
TERCEL_OP_API(out_apart)
Tensor isin(const Tensor& elements, Scalar test_element, bool assume_unique = false, bool invert = false);
TERCEL_OP_API(out_apart)
Tensor isin(Scalar element, const Tensor& test_elements, bool assume_unique = false, bool invert = false);

}  // namespace tercel
