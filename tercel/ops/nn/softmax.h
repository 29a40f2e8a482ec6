// Softmax, log-softmax and log-sum-exp. 16-bit floats are calculated in float32.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * exp(x) / sum(exp(x)) along a dimension, without overflow. x is floating (NotImplementedError), or is first converted
 * to the given floating dtype.
 */
TERCEL_OP_API(method, python, python_nn, out)
Tensor softmax(const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined);
/** x - log(sum(exp(x))); dtypes as for softmax(). */
TERCEL_OP_API(method, python, python_nn, out)
Tensor log_softmax(const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined);

}  // namespace tercel
