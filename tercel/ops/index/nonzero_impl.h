#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** The elements of x where a mask of the same sizes is nonzero, in row-major order; not recorded. */
Tensor elements_where(const Tensor& x, const Tensor& mask);

}  // namespace tercel
