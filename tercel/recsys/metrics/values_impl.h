// Values of tensors, as metrics take them. Private.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

/** The elements of a contiguous float32 tensor, in order; valid as long as its memory. */
inline Span<float> values_of(const Tensor& contiguous) {
  return {contiguous.data<float>(), static_cast<size_t>(contiguous.numel())};
}

}  // namespace tercel::recsys
