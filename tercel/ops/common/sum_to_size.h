// The reverse of broadcasting.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Sums x over the dimensions in which `sizes` would be broadcast to x's; x itself when there is none. */
TERCEL_OP_API(method) Tensor sum_to_size(const Tensor& x, IntSpan sizes);

}  // namespace tercel
