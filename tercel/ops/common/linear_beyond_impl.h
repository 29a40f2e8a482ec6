// The function of Huber losses; its functor is elementwise/unary_ops.h's LinearBeyond.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * scale * x^2 / 2 if |x| < limit, else the linear continuation. Not recorded; a floating x is overwritten, others are
 * converted.
 */
Tensor linear_beyond_into(const Tensor& x, double limit, double scale);

}  // namespace tercel
