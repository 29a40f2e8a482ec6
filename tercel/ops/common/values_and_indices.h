#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Elements and their indices along a dimension. */
struct ValuesAndIndices {
  Tensor values;
  Tensor indices;  ///< int64
};

}  // namespace tercel
