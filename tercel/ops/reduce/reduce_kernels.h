#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/tensor.h"
#include "tercel/ops/common/elementwise_loop_impl.h"
#include "tercel/ops/reduce/reduce_ops.h"

namespace tercel {

/**
 * A reduction. Kept dimensions select the output, reduced dimensions are combined; both are listed innermost (smallest
 * stride) first. The elements of an output, numbered with the innermost reduced dimension fastest, are split into
 * blocks; every block has one partial result of the compute type.
 */
struct ReduceLoop {
  int op;  ///< index in ReduceOps
  Compute compute;
  ScalarType dtype;  ///< dtype of the elements
  const char* in;
  char* out;
  int num_kept, num_reduced;
  const int64_t* kept_sizes;
  const int64_t* kept_strides;  ///< of the input, in bytes
  const int64_t* out_strides;   ///< of the same dimensions of the output, in bytes
  const int64_t* reduced_sizes;
  const int64_t* reduced_strides;
  int64_t reduced;  ///< elements per output
  int64_t block;    ///< elements per block
  int64_t blocks;
  int64_t out_block_stride;  ///< bytes from the partial results of a block to those of the next
};

/** Tasks (output, block), the block fastest. */
using ReduceFn = void(const ReduceLoop& loop, int64_t begin, int64_t end);

/** Number of columns reduced by one task. */
constexpr int64_t strip_width(Compute compute) { return 4096 / static_cast<int64_t>(item_size(native_dtype(compute))); }

/** The maximum (minimum) along one dimension, and its index. */
struct ArgReduceLoop {
  int op;  ///< index in ArgReduceOps
  Compute compute;
  ScalarType dtype;
  const char* in;
  char* values;  ///< of the compute type, or null
  int64_t* indices;
  int num_kept;
  const int64_t* kept_sizes;  ///< innermost first
  const int64_t* kept_strides;
  const int64_t* out_strides;  ///< in elements
  int64_t size;                ///< size of the reduced dimension
  int64_t stride;
};

using ArgReduceFn = void(const ArgReduceLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(ReduceFn, reduce_rows)
/** Tasks (block, outer kept index, strip), the strip fastest; strips divide the innermost kept dimension. */
TERCEL_DECLARE_KERNELS(ReduceFn, reduce_columns)
/** Outputs [begin, end). */
TERCEL_DECLARE_KERNELS(ArgReduceFn, arg_reduce_rows)
/** Tasks (outer kept index, strip), the strip fastest. */
TERCEL_DECLARE_KERNELS(ArgReduceFn, arg_reduce_columns)

}  // namespace tercel
