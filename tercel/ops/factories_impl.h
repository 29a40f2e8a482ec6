// How factories make what they fill.
#pragma once

#include <utility>

#include "tercel/core/tensor.h"
#include "tercel/ops/factories.h"

namespace tercel::detail {

/**
 * A new tensor that fill(tensor) fills before it may require a gradient, which would forbid the change. What fills it
 * leaves the version alone: a new tensor's is 0.
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

/** The same, like x. */
template <class Fill>
Tensor made_like(const Tensor& x, TensorOptions options, MemoryFormat format, Fill&& fill) {
  const bool requires_grad = std::exchange(options.requires_grad, false);
  Tensor out = empty_like(x, options, format);
  fill(out);
  return requires_grad ? out.requires_grad_() : out;
}

/** What zeros like a tensor need, without its elements: the gradient of an operand that a result does not depend on. */
struct ZerosLike {
  explicit ZerosLike(const Tensor& x) : sizes(x.sizes()), options(x.options()) {}
  Tensor operator()() const { return zeros(sizes, options); }

  DimVector sizes;
  TensorOptions options;
};

}  // namespace tercel::detail
