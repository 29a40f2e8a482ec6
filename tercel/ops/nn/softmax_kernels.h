#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel {

/** Contiguous [outer, n, inner] of float or double; the softmax is along n. */
struct SoftmaxLoop {
  Compute compute;
  bool log;
  int64_t n, inner;
  int64_t strip;  ///< columns processed together when inner > 1
  bool cached;    ///< all n rows of a strip fit in the cache
  bool stream;    ///< the result is large: use non-temporal stores
  const void* x;  ///< backward: the result
  const void* grad;
  void* out;
};
/** Rows [begin, end) of outer if inner is 1; else tasks (outer, strip), the strip fastest. */
using SoftmaxFn = void(const SoftmaxLoop& loop, int64_t begin, int64_t end);

/** Maximum number of columns in a strip. */
constexpr int64_t kMaxStripColumns = 1024;

TERCEL_DECLARE_KERNELS(SoftmaxFn, softmax)
TERCEL_DECLARE_KERNELS(SoftmaxFn, softmax_backward)

}  // namespace tercel
