#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"

namespace tercel {

/** Slices of one dimension, as runs of bytes. Strides are in bytes. */
struct SelectLoop {
  const char* in;
  char* out;  ///< row-major: [outer, n, run]
  const void* index;
  bool wide;  ///< int64, else int32
  int64_t n;
  int64_t size;  ///< size of the dimension
  int64_t outer_stride, stride, run;
};
/** Slices [begin, end) of outer * n. Returns the position of the first invalid index, or -1. */
using IndexSelectFn = int64_t(const SelectLoop& loop, int64_t begin, int64_t end);

constexpr int kMaxGatherDims = 64;

/**
 * Elements addressed by index. `sizes` are the index's without `dim`, outermost first; strides are in bytes: of the
 * indexed tensor (zero in dim), of index, and of other (source or output).
 */
struct GatherLoop {
  ScalarType dtype;
  bool wide;
  char* indexed;
  const char* index;
  char* other;
  int ndim;
  int64_t sizes[kMaxGatherDims];
  int64_t indexed_strides[kMaxGatherDims], index_strides[kMaxGatherDims], other_strides[kMaxGatherDims];
  int64_t n;                                           ///< index's size in dim
  int64_t size;                                        ///< size of the indexed tensor in dim
  int64_t indexed_stride, index_stride, other_stride;  ///< in dim
};
/** Lines (all indices along dim) [begin, end) of the product of sizes. Returns whether all indices are valid. */
using GatherFn = bool(const GatherLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(IndexSelectFn, index_select)
/** other = indexed[index] */
TERCEL_DECLARE_KERNELS(GatherFn, gather)

}  // namespace tercel
