#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** The elements of x, in row-major order, where a mask of its sizes is different from zero; not recorded. */
Tensor elements_where(const Tensor& x, const Tensor& mask);

}  // namespace tercel
