#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"

namespace tercel {

constexpr int kMaxIndexDims = 64;

/**
 * Blocks of an indexed tensor at given offsets, and the same blocks of another tensor at a fixed stride.
 *
 * Both have dimensions [before..., n, after...]: block (b, i) of the indexed tensor begins at the address of b plus
 * offset[i], that of the other at the address of b plus i * other_stride; a block has the dimensions `after`. Strides
 * are in bytes. No dimension is empty.
 */
struct IndexLoop {
  ScalarType dtype;
  char* indexed;
  char* other;
  const int64_t* offset;  ///< in bytes
  int64_t n, other_stride;
  int before, after;             ///< numbers of dimensions
  int64_t sizes[kMaxIndexDims];  ///< those before, then those after, outermost first
  int64_t indexed_strides[kMaxIndexDims], other_strides[kMaxIndexDims];
};
/** Positions [begin, end) of (product of the sizes before) * n. */
using IndexFn = void(const IndexLoop& loop, int64_t begin, int64_t end);

/** other = indexed[offset] */
TERCEL_DECLARE_KERNELS(IndexFn, index_get)
/** indexed[offset] = other */
TERCEL_DECLARE_KERNELS(IndexFn, index_put)
/** indexed[offset] += other; integers wrap, bool uses logical or */
TERCEL_DECLARE_KERNELS(IndexFn, index_add)

}  // namespace tercel
