// Tensors in huge pages although they are small. Private.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** empty() with memory of bytes_in_huge_pages(), for a tensor that other processes read. On other devices: empty(). */
TERCEL_API Tensor empty_in_huge_pages(IntSpan sizes, const TensorOptions& options);

}  // namespace tercel
