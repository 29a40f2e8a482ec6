// Exponentials that add up to one. 16-bit floats are calculated in float32.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * exp(x) / sum(exp(x)) along a dimension, without overflow. Floating x (NotImplementedError), or a floating dtype to
 * which x is converted first.
 */
TERCEL_OP_API(method, python, python_nn, out)
Tensor softmax(const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined);
/** x - log(sum(exp(x))), the same way. */
TERCEL_OP_API(method, python, python_nn, out)
Tensor log_softmax(const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined);
/** log(sum(exp(x))) without overflow; of integers in float32. Dimensions as in reduce.h. -inf for no elements. */
TERCEL_OP_API(method, python, out) Tensor logsumexp(const Tensor& x, IntSpan dim, bool keepdim = false);

}  // namespace tercel
