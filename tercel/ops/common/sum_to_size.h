// Reverse of broadcasting.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Sums x over the dimensions in which `sizes` would broadcast to x's sizes; returns x itself if there are none. */
TERCEL_OP_API(method) Tensor sum_to_size(const Tensor& x, IntSpan sizes);

}  // namespace tercel
