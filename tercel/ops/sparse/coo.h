// Sparse tensors in coordinate format (COO): creation, parts, conversion.
//
// A COO tensor of sizes s0 ... sn-1 has `sparse_dim` sparse dimensions followed by `dense_dim` dense ones, and nnz
// entries: indices [sparse_dim, nnz] int64 and values [nnz, *dense sizes]. An entry that occurs several times means the
// sum of its values; a tensor without such entries whose entries are in row-major order is coalesced. Its gradient has
// its sizes, and is either strided or COO (docs/design/autograd.md).
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * A COO tensor over these parts, which are shared, not copied; int32 indices are converted. Without `size`, the largest
 * index of each sparse dimension + 1, then the sizes of a value. RuntimeError for parts that do not fit each other or
 * the size; `check_invariants` (by default sparse::check_invariants()) also reads every index. `is_coalesced` says that
 * the entries are known to be coalesced.
 */
TERCEL_API Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values);
TERCEL_API Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntSpan size,
                                    std::optional<bool> check_invariants = std::nullopt,
                                    std::optional<bool> is_coalesced = std::nullopt);
/** The size of sparse_coo_tensor() without `size`; RuntimeError for a negative index. */
TERCEL_API DimVector infer_coo_size(const Tensor& indices, const Tensor& values);
/** Without entries; all dimensions are sparse. */
TERCEL_API Tensor sparse_coo_tensor(IntSpan size, TensorOptions options = {});

/** Indices [sparse_dim, nnz] of a coalesced tensor; RuntimeError for another one. */
TERCEL_OP_API(python_method, cheap, layout_sparse) Tensor indices(const Tensor& x);
/** Values [nnz, *dense sizes] of a coalesced tensor; RuntimeError for another one. */
TERCEL_OP_API(python_method, cheap, layout_sparse) Tensor values(const Tensor& x);
/** The indices as they are; not a part of the graph. */
TERCEL_OP_API(python_method, cheap, layout_sparse) Tensor _indices(const Tensor& x);
/** The values as they are; not a part of the graph. */
TERCEL_OP_API(python_method, cheap, layout_sparse) Tensor _values(const Tensor& x);
/** The number of entries, duplicates included. */
TERCEL_API int64_t _nnz(const Tensor& x);
/** The number of sparse dimensions; 0 for a strided tensor. */
TERCEL_API int64_t sparse_dim(const Tensor& x);
/** The number of dense dimensions; all of them for a strided tensor. */
TERCEL_API int64_t dense_dim(const Tensor& x);
/** Whether the tensor is known to be coalesced. */
TERCEL_API bool is_coalesced(const Tensor& x);
/** Declares a COO tensor coalesced or not, unchecked. */
TERCEL_API const Tensor& _coalesced_(const Tensor& x, bool coalesced);

/**
 * The same tensor with unique entries in row-major order: x itself if it is coalesced. The values of an entry are added
 * in the order of their positions (16-bit floats in float32), so the result does not depend on the number of threads.
 * IndexError for an index outside the sizes.
 */
TERCEL_OP_API(method, python_method, layout_sparse) Tensor coalesce(const Tensor& x);

/**
 * Strided, in x's dtype; a strided x itself. Its gradient has x's pattern, or is dense if `masked_grad` is false.
 * RuntimeError for another dtype.
 */
TERCEL_OP_API(method, python_method, layout_sparse)
Tensor to_dense(const Tensor& x, std::optional<ScalarType> dtype = std::nullopt, bool masked_grad = true);
/** The elements other than zero of a strided tensor, coalesced; NaN is kept. A COO tensor itself. */
TERCEL_OP_API(method) Tensor to_sparse(const Tensor& x);
/** The first `sparse_dim` dimensions are sparse: entries are the slices with an element other than zero. */
TERCEL_OP_API(method) Tensor to_sparse(const Tensor& x, int64_t sparse_dim);

/** x's elements at the entries of `mask`, a COO tensor of x's sizes; x is strided or COO. */
TERCEL_OP_API(method, python_method, layout_sparse) Tensor sparse_mask(const Tensor& x, const Tensor& mask);

/**
 * x with its entries repeated: along dimensions of size 1, and along new ones in front, which are sparse. Its gradient
 * has x's pattern. RuntimeError for sizes that x does not broadcast to.
 */
TERCEL_API Tensor _sparse_broadcast_to(const Tensor& x, IntSpan size);

/**
 * Changes sizes and numbers of dimensions in place. RuntimeError if a tensor with entries would change the number of
 * its dimensions, or shrink.
 */
TERCEL_API const Tensor& sparse_resize_(const Tensor& x, IntSpan size, int64_t sparse_dim, int64_t dense_dim);
/** The same, and removes all entries. */
TERCEL_API const Tensor& sparse_resize_and_clear_(const Tensor& x, IntSpan size, int64_t sparse_dim, int64_t dense_dim);
/**
 * sparse_resize_() to the sizes and numbers of dimensions of another tensor. A compressed tensor takes the indices of
 * one of the same layout too; new values hold whatever is there. RuntimeError for different layouts.
 */
TERCEL_API const Tensor& resize_as_sparse_(const Tensor& x, const Tensor& the_template);

namespace sparse {

/** Whether constructors of sparse tensors read every index; true unless changed. Process-wide. */
TERCEL_API bool check_invariants();
TERCEL_API void set_check_invariants(bool check);

}  // namespace sparse

}  // namespace tercel
