// Kernels of the elementwise families, on every device.
#pragma once

#include "tercel/core/dispatch.h"
#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel {
/** Index i runs op i of the list. */
TERCEL_DECLARE_KERNELS(ElementwiseFn, unary)
TERCEL_DECLARE_KERNELS(ElementwiseFn, unary_backward)
TERCEL_DECLARE_KERNELS(ElementwiseFn, binary)
/** Index 2 i computes the gradient of the first operand of binary op i, 2 i + 1 that of the second. */
TERCEL_DECLARE_KERNELS(ElementwiseFn, binary_backward)
TERCEL_DECLARE_KERNELS(ElementwiseFn, compare)
TERCEL_DECLARE_KERNELS(ElementwiseFn, ternary)
/** The compute type is that of the input; the kernel converts to the output's dtype when it stores. */
TERCEL_DECLARE_KERNELS(ElementwiseFn, copy)

}  // namespace tercel
