// Parts of tensors of compressed layouts, for the ops of this folder.
#pragma once

#include "tercel/core/sparse_data.h"
#include "tercel/core/tensor.h"
#include "tercel/ops/sparse/csr_impl.h"
#include "tercel/util/function_ref.h"

namespace tercel {

/** Whether one of the operands has a compressed layout. */
template <class... Tensors>
bool has_compressed(const Tensors&... operands) {
  return (is_compressed(operands.layout()) || ...);
}

namespace sparse_ops {

/** Whether rows are compressed (CSR, BSR), not columns. */
constexpr bool by_rows(Layout layout) { return layout == Layout::SparseCsr || layout == Layout::SparseBsr; }
/** Whether values are blocks (BSR, BSC). */
constexpr bool is_blocked(Layout layout) { return layout == Layout::SparseBsr || layout == Layout::SparseBsc; }
/** The layout of the transpose over the same arrays. */
constexpr Layout transposed_layout(Layout layout) {
  switch (layout) {
    case Layout::SparseCsr: return Layout::SparseCsc;
    case Layout::SparseCsc: return Layout::SparseCsr;
    case Layout::SparseBsr: return Layout::SparseBsc;
    default: return Layout::SparseBsr;
  }
}

/** The parts; NotImplementedError "op: ..." if x has no compressed layout. */
const SparseData& compressed_parts(const char* op, const Tensor& x);
/** The number of dimensions before the matrix. */
int64_t batch_dims(const Tensor& x);

using detail::make_compressed;
/** make_compressed(), as a result of `values`: its gradient at the entries is that of the values. */
Tensor compressed_of_values(Layout layout, const Tensor& offsets, const Tensor& plain, const Tensor& values,
                            IntSpan sizes);
/** x's pattern with other values, which may have another dtype. */
Tensor with_values(const Tensor& x, const Tensor& values);
/** The values, recorded. */
Tensor compressed_values(const Tensor& x);
/** Elements of x, of any layout, at the entries of a pattern of the same sizes: what its values would be. Recorded. */
Tensor elements_at_pattern(const Tensor& x, const Tensor& pattern);
/** x in the layout and blocks of a tensor of a compressed layout. Recorded. */
Tensor in_layout_of(const Tensor& x, const Tensor& like);
/** Whether both have one layout and equal indices. */
bool same_pattern(const Tensor& a, const Tensor& b);

/** A matrix of layout CSR or BSR as it is, one of layout CSC or BSC as the transpose, by rows. */
CsrMatrix matrix_of(const Tensor& x);
/** The reverse, of sizes [rows, columns, *dense sizes] of the tensor. */
Tensor tensor_of(Layout layout, const CsrMatrix& a, IntSpan sizes);
/** Offsets, indices and values at a position of a batch dimension. Recorded. */
Tensor batch_of(const Tensor& x, int64_t position, int64_t dim = 0);
/** Tensors of one layout, sizes and number of entries as a batch. Recorded. */
Tensor stack_batches(Span<Tensor> batches);

}  // namespace sparse_ops

// What ops do with operands of which at least one has a compressed layout (Note [Sparse operands]).
/** The gradient has x's pattern, or is strided if not `masked_grad`. */
Tensor compressed_to_dense(const Tensor& x, bool masked_grad);
Tensor compressed_to_coo(const Tensor& x);
Tensor compressed_map_values(const char* op, const Tensor& x, FunctionRef<Tensor(const Tensor& values)> f);
Tensor compressed_add(const Tensor& a, const Tensor& b, Scalar alpha);
Tensor compressed_mul(const Tensor& a, const Tensor& b);
/** The sizes, indices and number of entries of a tensor of the same layout; of new values the first ones are the old.
 */
const Tensor& compressed_resize_as_(const Tensor& x, const Tensor& the_template);
Tensor compressed_select(const Tensor& x, int64_t dim, int64_t index);
Tensor compressed_transpose(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor compressed_sum(const Tensor& x, IntSpan dims, bool keepdim, ScalarType dtype);
/** Gradients of compressed factors have their pattern. */
Tensor compressed_mm(const Tensor& a, const Tensor& b);
Tensor compressed_mv(const Tensor& a, const Tensor& b);
Tensor compressed_addmm(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha);

}  // namespace tercel
