// Differentiable ops whose derivative is not implemented: an error instead of a zero gradient.
#pragma once

#include "tercel/autograd/record.h"

namespace tercel {

/** Makes floating `outs` results of the node whose backward is a NotImplementedError: "the derivative for 'op' is ...".
 */
TERCEL_API void record_not_implemented(const char* node, Span<Tensor> outs, InputRefs inputs, const char* op);

/** RuntimeError if the argument requires a gradient, which the op does not compute. */
TERCEL_API void check_without_gradient(const char* op, const Tensor& t, const char* argument);

}  // namespace tercel
