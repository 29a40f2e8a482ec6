#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel {

/** Philox blocks of a group, computed in parallel; each gives four words. */
constexpr int64_t kDropoutBlocks = 16;
constexpr int64_t kDropoutGroup = 4 * kDropoutBlocks;

/** Contiguous float or double. */
struct DropoutLoop {
  Compute compute;
  const void* x;
  void* out;
  int64_t n;
  uint64_t seed, stream;
  uint64_t block;      ///< number of the first group's first block
  int64_t skip;        ///< words of the first group that come before element 0; below kDropoutGroup
  uint32_t threshold;  ///< elements whose word is below this are dropped
  double scale;        ///< for the elements that are kept
};
/** Groups [begin, end): element 64 g + 16 w + b - skip takes word w of block 16 g + b. */
using DropoutFn = void(const DropoutLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(DropoutFn, dropout)

}  // namespace tercel
