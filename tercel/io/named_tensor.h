// Tensors with names, as stored in files.
#pragma once

#include <string>

#include "tercel/core/tensor.h"

namespace tercel::io {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace tercel::io
