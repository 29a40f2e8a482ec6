// Products of integer matrices.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

/** C = A B, all row-major and contiguous: A is m x k, B k x n. Sums wrap. */
struct IntMatmul {
  int64_t m, n, k;
  const void* a;
  const void* b;
  void* c;
  bool wide;  ///< int64, else int32
};
/** Rows [begin, end) of C. */
using IntMatmulFn = void(const IntMatmul& product, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(IntMatmulFn, int_matmul)

}  // namespace tercel
