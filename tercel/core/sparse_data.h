// The parts of a tensor of a sparse layout, or of a packed weight.
//
// Note [Sparse tensors]
// A tensor of a sparse layout is a TensorImpl with sizes and a dtype but without a storage; its elements are in parts,
// which are strided tensors. Copies that share elements (detach(), views of all of a tensor) share the parts, and a
// replaced part is replaced in one of them only, as in PyTorch. The tensor has a version counter of its own, which its
// parts share: an in-place change of `_values()` is a change of the tensor to those that have saved it for backward. So
// does the transpose of a compressed tensor, which is a view. A packed weight, of the layout Opaque, is the same with
// one part; Note [Packed weights] in ops/linalg/packed_weight_impl.h.
#pragma once

#include <cstdint>

#include "tercel/core/tensor.h"

namespace tercel {

struct SparseData {
  /** COO: [sparse_dim, nnz] int64. Compressed layouts: the offsets, [*batch, rows (or columns, blocks) + 1]. */
  Tensor indices;
  /** Compressed layouts: [*batch, nnz], the index in the other dimension. COO: undefined. */
  Tensor plain_indices = {};
  /**
   * COO: [nnz, *dense sizes]. CSR, CSC: [*batch, nnz, *dense sizes]. BSR, BSC: [*batch, nnz, *block, *dense sizes].
   * Opaque: the panels; all other fields are as default.
   */
  Tensor values;
  int64_t sparse_dim = 0;  ///< 2 in compressed layouts
  int64_t dense_dim = 0;
  bool coalesced = false;  ///< COO: known to be sorted in row-major order, without duplicates
};

namespace detail {
/** A COO tensor of parts that fit the sizes, which the caller has checked; without history. */
TERCEL_API Tensor make_coo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced);
/** The same of a compressed layout. */
TERCEL_API Tensor make_compressed(Layout layout, const Tensor& offsets, const Tensor& plain, const Tensor& values,
                                  IntSpan sizes);
}  // namespace detail

}  // namespace tercel
