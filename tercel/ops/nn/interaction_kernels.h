#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel {

/**
 * Dot interaction of one batch, float or double: a first vector and `slots` others. Without an mlp the first embedding
 * is the first vector. Strides are elements from sample to sample.
 */
struct DotLoop {
  Compute compute;
  int64_t slots, dim;
  int64_t passed;  ///< elements that are copied to the output, starting at the first vector: dim, or all vectors'
  const void* first;
  int64_t first_stride;
  const void* others;  ///< [slots, dim] each
  int64_t others_stride;
  const void* out_grad;
  void* out;
  int64_t out_stride;  ///< of out or out_grad
  void* first_grad;    ///< with first_grad_stride, or null
  int64_t first_grad_stride;
  void* others_grad;  ///< with others_stride, or null
  bool pad;
};
/** Elements of scratch memory that a kernel needs for these sizes, forward and backward. */
constexpr int64_t dot_scratch(int64_t slots, int64_t dim) {
  const int64_t rows = (slots + 1 + 15) / 16 * 16 + 16, padded_dim = (dim + 15) / 16 * 16;
  return rows * (padded_dim > rows ? padded_dim : rows) + 2 * rows * padded_dim + 8 * rows;
}
/** Samples [begin, end). */
using DotFn = void(const DotLoop& loop, void* scratch, int64_t begin, int64_t end);

struct FmLoop {
  Compute compute;
  int64_t slots, dim;
  const void* x;         ///< [batch, slots * dim]
  const void* out_grad;  ///< [batch, dim]
  void* out;             ///< [batch, dim], or the gradient of x
};
using FmFn = void(const FmLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(DotFn, dot_interaction)
TERCEL_DECLARE_KERNELS(DotFn, dot_interaction_backward)
TERCEL_DECLARE_KERNELS(FmFn, fm_order2)
TERCEL_DECLARE_KERNELS(FmFn, fm_order2_backward)

}  // namespace tercel
