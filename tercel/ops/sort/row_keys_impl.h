#pragma once

#include <cstdint>

#include "tercel/core/tensor.h"

namespace tercel {

/** Sort keys of a row; int64 elements are their own keys. Reuses its memory between calls. */
class RowKeys {
 public:
  const int64_t* read(const Tensor& like, const void* row, int64_t n);

 private:
  Tensor memory_;
};

}  // namespace tercel
