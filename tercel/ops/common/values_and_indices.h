#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Elements, and where along a dimension they stood. */
struct ValuesAndIndices {
  Tensor values;
  Tensor indices;  ///< int64
};

}  // namespace tercel
