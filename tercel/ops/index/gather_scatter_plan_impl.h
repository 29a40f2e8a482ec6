// Shared by gather and scatter: checks of the index, and iteration over its lines.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/index/gather_kernels.h"
#include "tercel/util/function_ref.h"

namespace tercel {

/** RuntimeError unless index is int64, int32 or empty. */
void check_index(const char* op, const Tensor& index);

/** RuntimeError unless index has the dimensions of `of`, and no larger ones, dim excepted if `also_dim` is false. */
void check_index_sizes(const char* op, const Tensor& index, const Tensor& of, const char* name, int64_t dim,
                       bool also_dim);

/** RuntimeError that names the first index outside [0, size), if there is one. */
void check_bounds(const Tensor& index, int64_t dim, int64_t size);

/** Calls body(loop, begin, end) for parts of the lines of index along dim; `other` has index's sizes, or larger ones.
 */
void run_gather_scatter(const Tensor& indexed, int64_t dim, const Tensor& index, const Tensor& other,
                        FunctionRef<void(const GatherLoop&, int64_t, int64_t)> body);

}  // namespace tercel
