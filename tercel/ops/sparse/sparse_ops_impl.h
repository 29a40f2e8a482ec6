// What ops of other families do with sparse operands.
//
// Note [Sparse operands]
// The front end of an op that takes sparse operands asks has_sparse() before it checks anything else, and calls the
// function of its name declared here; dense calls pay for one comparison. These functions decide by layout, and refuse
// a layout that they have no code for with refuse_layout(). Most compute with the values by dense ops, which also
// record the gradient: coalesce(), values() and the constructor are recorded ops.
#pragma once

#include <string_view>

#include "tercel/core/tensor.h"
#include "tercel/util/function_ref.h"

namespace tercel {

/** Whether one of the operands has a sparse layout. Undefined tensors have none. */
template <class... Tensors>
bool has_sparse(const Tensors&... operands) {
  return (is_sparse(operands.layout()) || ...);
}
inline bool has_sparse(Span<Tensor> operands) {
  for (const Tensor& t : operands)
    if (is_sparse(t.layout())) return true;
  return false;
}

// copies and factories
Tensor sparse_clone(const Tensor& x);
Tensor sparse_to(const Tensor& x, ScalarType dtype, bool copy);
const Tensor& sparse_copy_(const Tensor& x, const Tensor& source);
const Tensor& sparse_zero_(const Tensor& x);
/**
 * Of CSR matrices: more rows are empty, those behind the last one go with their entries. Of a batch, which must not get
 * larger, the first ones stay.
 */
const Tensor& sparse_resize_(const Tensor& x, IntSpan sizes);
Tensor sparse_empty_like(const char* op, const Tensor& x, TensorOptions options, MemoryFormat format);
/** Replaces what a sparse `out` holds by a result of the same layout; Note [Out variants]. */
const Tensor& sparse_put_out(const char* op, const Tensor& out, const Tensor& result);
/** RuntimeError, of an in-place function of elements: as in PyTorch it needs a coalesced tensor. */
void sparse_check_coalesced(std::string_view op, const Tensor& x);
/** x as an operand of an op whose result replaces it: a copy if the op is recorded, for backward needs the old parts.
 */
Tensor sparse_as_it_was(const Tensor& x, bool records);
/** x = result, which has x's layout, recorded. RuntimeError if its dtype cannot be cast to x's. */
const Tensor& sparse_assign_(const Tensor& x, const Tensor& result);

// elementwise
/** f applied to the values; NotImplementedError unless f(0) is 0. */
Tensor sparse_map_values(const char* op, const Tensor& x, FunctionRef<Tensor(const Tensor& values)> f);
const Tensor& sparse_map_values_(const char* op, const Tensor& x, FunctionRef<Tensor(const Tensor& values)> f);
Tensor sparse_neg(const Tensor& x);
Tensor sparse_add(const Tensor& a, const Tensor& b, Scalar alpha);
const Tensor& sparse_add_(const char* op, const Tensor& a, const Tensor& b, Scalar alpha);
Tensor sparse_mul(const Tensor& a, const Tensor& b);
Tensor sparse_mul(const Tensor& a, Scalar b);
const Tensor& sparse_mul_(const Tensor& a, const Tensor& b);
const Tensor& sparse_mul_(const Tensor& a, Scalar b);
Tensor sparse_div(const Tensor& a, const Tensor& b);
Tensor sparse_div(const Tensor& a, Scalar b);
const Tensor& sparse_div_(const Tensor& a, const Tensor& b);
const Tensor& sparse_div_(const Tensor& a, Scalar b);
bool sparse_equal(const Tensor& a, const Tensor& b);
bool sparse_allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan);

// reductions
Tensor sparse_sum(const Tensor& x, IntSpan dims, bool keepdim, ScalarType dtype);
Tensor sparse_any(const Tensor& x);
Tensor sparse_norm(const Tensor& x, double p);
/** The same; RuntimeError unless the norm is that of all dimensions. */
Tensor sparse_norm(const Tensor& x, double p, IntSpan dims, bool keepdim);

/** RuntimeError: `op`, "division" or "floor division", of sparse tensors takes numbers only. */
[[noreturn]] void sparse_refuse_divisor(const char* op, const Tensor& divisor);

// views, which are copies here
/** RuntimeError. */
[[noreturn]] void sparse_refuse_expand(const Tensor& x);
Tensor sparse_transpose(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor sparse_permute(const Tensor& x, IntSpan dims);
Tensor sparse_unsqueeze(const Tensor& x, int64_t dim);
Tensor sparse_squeeze(const Tensor& x, IntSpan dims);
Tensor sparse_select(const Tensor& x, int64_t dim, int64_t index);
/** Of a part that is inside: dim and start are not negative. */
Tensor sparse_narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
Tensor sparse_index_select(const Tensor& x, int64_t dim, const Tensor& index);
Tensor sparse_cat(Span<Tensor> tensors, int64_t dim);
Tensor sparse_stack(Span<Tensor> tensors, int64_t dim);
const Tensor& sparse_transpose_(const char* op, const Tensor& x, int64_t dim0, int64_t dim1);

// products
Tensor sparse_mm(const Tensor& a, const Tensor& b);
Tensor sparse_mv(const Tensor& a, const Tensor& b);
Tensor sparse_bmm(const Tensor& a, const Tensor& b);
Tensor sparse_matmul(const Tensor& a, const Tensor& b);
Tensor sparse_addmv(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha);
Tensor sparse_addmm(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha);
/** X [*batch, n, k] with op(A) X = b for the upper or lower triangle of a compressed A [*batch, n, n]. */
Tensor sparse_triangular_solve(const Tensor& b, const Tensor& A, bool upper, bool transposed, bool unitriangular);

}  // namespace tercel
