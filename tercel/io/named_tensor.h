// Tensors with names, as files hold them.
#pragma once

#include <string>

#include "tercel/core/tensor.h"

namespace tercel::io {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace tercel::io
