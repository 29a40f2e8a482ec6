#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel {

/** Contiguous [outer, n, inner] of float or double, along n. */
struct SoftmaxLoop {
  Compute compute;
  bool log;
  int64_t n, inner;
  int64_t strip;  ///< columns that are worked on together when inner > 1
  bool cached;    ///< a strip of all n rows stays in the cache
  bool stream;    ///< the result is large: it is written past the caches
  const void* x;  ///< the result, backward
  const void* grad;
  void* out;
};
/** Rows [begin, end) of outer when inner is 1; else tasks (outer, strip), the strip fastest. */
using SoftmaxFn = void(const SoftmaxLoop& loop, int64_t begin, int64_t end);

/** Columns of the widest strip. */
constexpr int64_t kMaxStripColumns = 1024;

TERCEL_DECLARE_KERNELS(SoftmaxFn, softmax)
TERCEL_DECLARE_KERNELS(SoftmaxFn, softmax_backward)

}  // namespace tercel
