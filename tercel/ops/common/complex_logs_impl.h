// Log-sum-exp of complex numbers as composite ops, since the kernels are for real numbers.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/util/span.h"

namespace tercel {

Tensor complex_logaddexp(const Tensor& a, const Tensor& b);
Tensor complex_logsumexp(const Tensor& x, IntSpan dims, bool keepdim);
Tensor complex_logcumsumexp(const Tensor& x, int64_t dim);

}  // namespace tercel
