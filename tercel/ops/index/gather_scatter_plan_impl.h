// Checks of the index, and iteration over its lines, shared by gather and scatter.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/index/gather_kernels.h"
#include "tercel/util/function_ref.h"

namespace tercel {

/** RuntimeError unless index is int64, int32 or empty. */
void check_index(const char* op, const Tensor& index);

/** RuntimeError unless index has as many dimensions as `of` and no larger sizes (except in dim, unless `also_dim`). */
void check_index_sizes(const char* op, const Tensor& index, const Tensor& of, const char* name, int64_t dim,
                       bool also_dim);

/** RuntimeError naming the first index outside [0, size), if any. */
void check_bounds(const Tensor& index, int64_t dim, int64_t size);

/** Calls body(loop, begin, end) for parts of the lines of index along dim; `other` has at least index's sizes. */
void run_gather_scatter(const Tensor& indexed, int64_t dim, const Tensor& index, const Tensor& other,
                        FunctionRef<void(const GatherLoop&, int64_t, int64_t)> body);

}  // namespace tercel
