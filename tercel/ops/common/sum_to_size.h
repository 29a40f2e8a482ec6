// Reverse of broadcasting.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Sums x over the dimensions in which `size` would broadcast to x's sizes; returns x itself if there are none. */
TERCEL_OP_API(method, python_method) Tensor sum_to_size(const Tensor& x, IntSpan size);

}  // namespace tercel
