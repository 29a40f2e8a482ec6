// Helpers shared by the front ends of reductions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tercel/core/tensor.h"
#include "tercel/ops/common/elementwise_loop_impl.h"
#include "tercel/ops/reduce/reduce_ops.h"

namespace tercel {

/** Bit d: dimension d is reduced. */
using DimMask = uint64_t;

/** Combines x over the masked dimensions; the result has the other dimensions and the dtype of the compute type. */
Tensor reduce_over(int op, Compute compute, const Tensor& x, DimMask mask);
/** Maximum or minimum (op of ArgReduceOps) and its index along one dimension of nonzero size; results lack the
 * dimension, values have x's dtype. */
void arg_reduce_over(int op, const Tensor& x, int64_t dim, Tensor* values, Tensor& indices);

namespace reduction {

template <class Op>
constexpr int op_index = index_of<Op, ReduceOps>;

inline bool is_reduced(DimMask mask, size_t d) { return (mask >> d & 1) != 0; }
/** The dimensions to reduce; an empty list means all. IndexError if out of range, RuntimeError for duplicates. */
DimMask dim_mask(const char* op, const Tensor& x, IntSpan dims);
/** Number of elements reduced into each output. */
int64_t reduced_count(const Tensor& x, DimMask mask);
/** A new row-major tensor with different sizes. */
Tensor with_sizes(const Tensor& fresh, IntSpan sizes);
/** The op's result in the compute type. */
Tensor reduce(int op, Compute compute, const Tensor& x, DimMask mask, bool keepdim);
/** Restores the reduced dimensions, with size 1, in a result or its gradient. */
Tensor with_reduced_dims(Tensor t, size_t ndim, DimMask mask, bool keepdim);
/** The gradient of a result, divided equally among the elements equal to it. */
Tensor share_among(const Tensor& grad, const Tensor& equal, DimMask mask);
/** RuntimeError unless the dtype is floating or complex; the message begins with `which`. */
void check_floating_result(const char* op, ScalarType dtype, const char* which = "Input");

}  // namespace reduction

}  // namespace tercel
