#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel {

/** Elements of a group: each Philox block gives four words, and 16 blocks are computed in parallel. */
constexpr int64_t kDropoutBlocks = 16;
constexpr int64_t kDropoutGroup = 4 * kDropoutBlocks;

/** Contiguous float or double. */
struct DropoutLoop {
  Compute compute;
  const void* x;
  void* out;
  int64_t n;
  uint64_t seed, offset;  ///< block `offset` is the first
  uint32_t threshold;     ///< elements whose word is below it are dropped
  double scale;           ///< of the others
};
/** Groups [begin, end): element 64 g + 16 w + b takes word w of block 16 g + b. */
using DropoutFn = void(const DropoutLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(DropoutFn, dropout)

}  // namespace tercel
