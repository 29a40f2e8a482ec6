// A tensor's properties without its elements.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Sizes, dtype and device of a tensor; backward functions keep it for operands whose elements they do not need.
 */
struct TensorMeta {
  DimVector sizes;
  TensorOptions options;  ///< dtype and device

  /** For an undefined tensor. */
  TensorMeta() : options(ScalarType::Undefined) {}
  explicit TensorMeta(const Tensor& t) {
    if (!t.defined()) {
      options.dtype = ScalarType::Undefined;
      return;
    }
    sizes = DimVector(t.sizes());
    options = TensorOptions(t.dtype(), t.device());
  }

  ScalarType dtype() const { return options.dtype; }
  friend bool operator==(const TensorMeta& a, const TensorMeta& b) {
    return IntSpan(a.sizes) == IntSpan(b.sizes) && a.options.dtype == b.options.dtype &&
           a.options.device == b.options.device;
  }
};

}  // namespace tercel
