// Shared by front ends and loops of special ops; see Note [Special ops].
#pragma once

#include "tercel/ops/common/elementwise_kernels.h"

namespace tercel {

/** Indices of the op's loop and of its gradients' loops. */
enum class SpecialPart : int { Forward, GradientA, GradientB };
constexpr int kSpecialParts = 3;
constexpr int special_number(bool binary, int op, SpecialPart part) {
  return 2 * (kSpecialParts * op + static_cast<int>(part)) + static_cast<int>(binary);
}

using SpecialLoop = void (*)(void* out, const void* const* in, int64_t n);
/** The loop over contiguous elements of a compute type; null where the op has none, or
 * has one of vectors. The same for every instruction set.
 */
SpecialLoop special_loop(int number, Compute compute);

/** Runs special_loop() through the tiles of an instruction set. */
TERCEL_DECLARE_KERNELS(ElementwiseFn, special_elementwise)

}  // namespace tercel
