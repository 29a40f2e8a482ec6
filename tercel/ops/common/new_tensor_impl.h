// Creation of filled tensors.
#pragma once

#include <utility>

#include "tercel/core/tensor_meta.h"
#include "tercel/ops/factories/factories.h"

namespace tercel::detail {

/**
 * A new tensor, filled by fill(tensor) before requires_grad is set, which would forbid the change. fill must not bump
 * the version, which is 0 for a new tensor.
 */
template <class Fill>
Tensor made(IntSpan sizes, TensorOptions options, Fill&& fill) {
  const bool requires_grad = options.requires_grad;
  options.requires_grad = false;
  Tensor out = empty(sizes, options);
  fill(out);
  if (requires_grad) out.requires_grad_();
  return out;
}

/** The same with x's sizes and options. */
template <class Fill>
Tensor made_like(const Tensor& x, TensorOptions options, MemoryFormat format, Fill&& fill) {
  const bool requires_grad = std::exchange(options.requires_grad, false);
  Tensor out = empty_like(x, options, format);
  fill(out);
  return requires_grad ? out.requires_grad_() : out;
}

/** The gradient of an operand that a result does not depend on. */
inline Tensor zeros_like(const TensorMeta& meta) { return zeros(meta.sizes, meta.options); }

}  // namespace tercel::detail
