// How factories make what they fill.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel::detail {

/** A new tensor that fill(tensor) fills before it may require a gradient, which would forbid the change. */
template <class Fill>
Tensor made(IntSpan sizes, TensorOptions options, Fill&& fill) {
  const bool requires_grad = options.requires_grad;
  options.requires_grad = false;
  Tensor out = empty(sizes, options);
  fill(out);
  if (requires_grad) out.requires_grad_();
  return out;
}

}  // namespace tercel::detail
