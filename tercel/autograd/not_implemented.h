// Ops without a derivative where one would exist: an error says so, not a gradient of zero.
#pragma once

#include "tercel/autograd/record.h"

namespace tercel {

/** Makes floating `outs` results of the node whose backward is a NotImplementedError: "the derivative for 'op' is ...".
 */
TERCEL_API void record_not_implemented(const char* node, Span<Tensor> outs, InputRefs inputs, const char* op);

/** RuntimeError if the argument of the op requires a gradient, which the op does not give it. */
TERCEL_API void check_without_gradient(const char* op, const char* argument, const Tensor& t);

}  // namespace tercel
