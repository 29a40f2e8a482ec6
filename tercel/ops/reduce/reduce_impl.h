// What front ends of reductions share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tercel/core/tensor.h"
#include "tercel/ops/common/elementwise_loop.h"
#include "tercel/ops/reduce/reduce_ops.h"

namespace tercel {

/** Bit d: dimension d is reduced. */
using DimMask = uint64_t;

/** Combines x over the masked dimensions; the other dimensions' sizes, dtype of the compute type. */
Tensor reduce_over(int op, Compute compute, const Tensor& x, DimMask mask);
/** The same for the largest (op of ArgReduceOps) along one dimension whose size is not 0; without it, keeping x's
 * dtype. */
void arg_reduce_over(int op, const Tensor& x, int64_t dim, Tensor* values, Tensor& indices);

namespace reduction {

template <class Op>
constexpr int op_index = index_of<Op, ReduceOps>;

inline bool is_reduced(DimMask mask, size_t d) { return (mask >> d & 1) != 0; }
/** Which dimensions to reduce; an empty list means all. IndexError, and RuntimeError for one that comes twice. */
DimMask dim_mask(const char* op, const Tensor& x, IntSpan dims);
/** How many elements an output is made of. */
int64_t reduced_count(const Tensor& x, DimMask mask);
/** Fresh row-major memory under other sizes. */
Tensor with_sizes(const Tensor& fresh, IntSpan sizes);
/** The op's result in the compute type. */
Tensor reduce(int op, Compute compute, const Tensor& x, DimMask mask, bool keepdim);
/** A result, or its gradient, with the reduced dimensions as 1. */
Tensor with_reduced_dims(Tensor t, size_t ndim, DimMask mask, bool keepdim);
/** The gradient of a result that equals some of the elements, shared among them. */
Tensor share_among(const Tensor& grad, const Tensor& equal, DimMask mask);
/** RuntimeError for a dtype that has no fractions; `which` dtype it is begins a sentence. */
void check_floating_result(const char* op, ScalarType dtype, const char* which = "Input");

}  // namespace reduction

}  // namespace tercel
