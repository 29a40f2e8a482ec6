// Declarations shared by front ends and loops of special ops; see Note [Special ops].
#pragma once

#include "tercel/ops/common/elementwise_kernels.h"

namespace tercel {

/** Selects the loop of an op or of one of its gradients. */
enum class SpecialPart : int { Forward, GradientA, GradientB };
constexpr int kSpecialParts = 3;
constexpr int special_number(bool binary, int op, SpecialPart part) {
  return 2 * (kSpecialParts * op + static_cast<int>(part)) + static_cast<int>(binary);
}

using SpecialLoop = void (*)(void* out, const void* const* in, int64_t n);
/**
 * The loop over contiguous elements of a compute type, for every instruction set; null if the op has none, or vector
 * loops.
 */
SpecialLoop special_loop(int number, Compute compute);

/** Runs special_loop() over the tiles of an instruction set. */
TERCEL_DECLARE_KERNELS(ElementwiseFn, special_elementwise)

}  // namespace tercel
