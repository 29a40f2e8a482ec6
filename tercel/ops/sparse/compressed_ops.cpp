// Functions of elements, sums and views of tensors of compressed layouts.
#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/promotion.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sparse/compressed.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"

namespace tercel {

using sparse_ops::batch_dims;
using sparse_ops::batch_of;
using sparse_ops::by_rows;
using sparse_ops::compressed_of_values;
using sparse_ops::compressed_parts;
using sparse_ops::compressed_values;
using sparse_ops::coo_of_values;
using sparse_ops::csr_add;
using sparse_ops::csr_mul;
using sparse_ops::CsrMatrix;
using sparse_ops::elements_at_pattern;
using sparse_ops::in_layout_of;
using sparse_ops::is_blocked;
using sparse_ops::matrix_of;
using sparse_ops::same_pattern;
using sparse_ops::tensor_of;
using sparse_ops::transposed_layout;
using sparse_ops::with_values;

namespace {

/** Both by rows in one orientation, of one dtype and index dtype. */
struct Operands {
  Layout layout;
  CsrMatrix a, b;
};
Operands operands_of(const char* op, const Tensor& x, const Tensor& y) {
  for (const Tensor& t : {x, y})
    TERCEL_CHECK(batch_dims(t) == 0 && t.dim() == 2, NotImplementedError, op,
                 ": not implemented for compressed tensors of different patterns with batch or dense dimensions");
  const Layout layout = by_rows(x.layout()) ? Layout::SparseCsr : Layout::SparseCsc;
  Operands out{layout, matrix_of(to_sparse(x, layout)), matrix_of(to_sparse(y, layout))};
  const ScalarType dtype = result_type(x, y);
  out.a.values = to(out.a.values, dtype);
  out.b.values = to(out.b.values, dtype);
  sparse_ops::share_index_dtype(out.a, out.b);
  return out;
}

void check_same_sizes(const char* op, const Tensor& a, const Tensor& b) {
  TERCEL_CHECK(a.sizes() == b.sizes(), RuntimeError, op,
               ": expected 'self' and 'other' to have same size, but self has size ", a.sizes(),
               " while other has size ", b.sizes());
}

/** What `sum` has at the entries of x: x's gradient. */
Tensor at_pattern(const Tensor& g, const Tensor& pattern, ScalarType dtype) {
  return with_values(pattern, to(elements_at_pattern(g, pattern), dtype));
}

Tensor merged_sum(const Tensor& a, const Tensor& b, Scalar alpha) {
  if (same_pattern(a, b)) return with_values(a, add(compressed_values(a), compressed_values(b), alpha));
  Tensor out;
  {
    const NoRecordGuard no_record;
    const Operands operands = operands_of("add", a, b);
    out = in_layout_of(tensor_of(operands.layout, csr_add("add", operands.a, operands.b, alpha), a.sizes()), a);
  }
  if (should_record(a, b))
    record("AddBackward0", out, {a, b},
           [a = SavedTensor(a.detach()), b = SavedTensor(b.detach()), alpha](BackwardCall& call) {
             if (call.needs(0)) call.set(0, at_pattern(call.grad(), a.get(), a.get().dtype()));
             if (call.needs(1)) {
               const Tensor factor = scalar_tensor(alpha, TensorOptions(b.get().dtype()));
               const Tensor g = at_pattern(call.grad(), b.get(), b.get().dtype());
               call.set(1, with_values(g, mul(compressed_values(g), factor.is_complex() ? conj(factor) : factor)));
             }
           });
  return out;
}

Tensor common_product(const Tensor& a, const Tensor& b) {
  if (same_pattern(a, b)) return with_values(a, mul(compressed_values(a), compressed_values(b)));
  Tensor out;
  {
    const NoRecordGuard no_record;
    const Operands operands = operands_of("mul", a, b);
    out = in_layout_of(tensor_of(operands.layout, csr_mul("mul", operands.a, operands.b), a.sizes()), a);
  }
  if (should_record(a, b))
    record("MulBackward0", out, {a, b}, [a = SavedTensor(a), b = SavedTensor(b)](BackwardCall& call) {
      const auto gradient = [&](const Tensor& of, const Tensor& other) {
        const Tensor factor = elements_at_pattern(other, of);
        const Tensor g = mul(elements_at_pattern(call.grad(), of), factor.is_complex() ? conj(factor) : factor);
        return with_values(of.detach(), to(g, of.dtype()));
      };
      if (call.needs(0)) call.set(0, gradient(a.get(), b.get()));
      if (call.needs(1)) call.set(1, gradient(b.get(), a.get()));
    });
  return out;
}

}  // namespace

Tensor compressed_map_values(const char* op, const Tensor& x, FunctionRef<Tensor(const Tensor&)> f) {
  compressed_parts(op, x);
  return with_values(x, f(compressed_values(x)));
}

Tensor compressed_add(const Tensor& a, const Tensor& b, Scalar alpha) {
  TERCEL_CHECK(!is_sparse(a.layout()) || !is_sparse(b.layout()) || a.sizes() == b.sizes(), RuntimeError,
               "add: Expected input tensors to have the same shape, but got tensor `self` with shape ", a.sizes(),
               " and tensor `other` with shape ", b.sizes());
  check_same_sizes("add", a, b);
  // As in PyTorch, the sum with a strided tensor is strided, whichever is first.
  if (!is_sparse(a.layout())) return add(a, to_dense(b), alpha);
  if (!is_sparse(b.layout())) return add(to_dense(a), b, alpha);
  if (!is_compressed(a.layout())) return merged_sum(in_layout_of(a, b), b, alpha);
  return merged_sum(a, is_compressed(b.layout()) ? b : in_layout_of(b, a), alpha);
}

Tensor compressed_mul(const Tensor& a, const Tensor& b) {
  if (!is_compressed(a.layout()) && (!is_sparse(a.layout()) || !is_compressed(b.layout()))) return compressed_mul(b, a);
  if (!is_sparse(b.layout()) && b.dim() == 0) return with_values(a, mul(compressed_values(a), b));
  const DimVector sizes = broadcast_sizes(a.sizes(), b.sizes());
  TERCEL_CHECK(a.sizes() == IntSpan(sizes), NotImplementedError,
               "mul: not implemented for compressed tensors that are ", "expanded, from sizes ", a.sizes(), " to ",
               IntSpan(sizes));
  if (!is_sparse(b.layout()))
    return with_values(a, mul(compressed_values(a), elements_at_pattern(expand(b, a.sizes()), a)));
  check_same_sizes("mul", a, b);
  if (!is_compressed(a.layout())) return common_product(in_layout_of(a, b), b);
  return common_product(a, is_compressed(b.layout()) ? b : in_layout_of(b, a));
}

Tensor compressed_transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  const SparseData& parts = compressed_parts("transpose", x);
  const int64_t a = wrap_dim(dim0, x.dim()), b = wrap_dim(dim1, x.dim()), row = batch_dims(x);
  TERCEL_CHECK(dense_dim(x) == 0, RuntimeError,
               "transpose(): hybrid sparse compressed tensors with dense dimensions are not supported");
  TERCEL_CHECK((a < row) == (b < row), RuntimeError,
               "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got ", a,
               a < row ? "(Batch)" : "(Sparse)", " and ", b, b < row ? "(Batch)" : "(Sparse)");
  Layout layout = x.layout();
  DimVector sizes(x.sizes());
  std::swap(sizes[static_cast<size_t>(a)], sizes[static_cast<size_t>(b)]);
  Tensor offsets = parts.indices, plain = parts.plain_indices, values = compressed_values(x);
  if (a < row) {
    for (Tensor* part : {&offsets, &plain, &values}) *part = transpose(*part, a, b);
  } else if (a != b) {
    layout = transposed_layout(layout);
    if (is_blocked(layout)) values = transpose(values, row + 1, row + 2);
  }
  Tensor out = compressed_of_values(layout, offsets, plain, values, sizes);
  out.impl().share_sparse_version(x.impl());
  // The transpose of a tracked tensor has a history in place of a base: a recorded change gives it parts of its own.
  if (!is_tracked(x)) detail::init_view(out, x, ViewOrigin::Ordinary);
  return out;
}

Tensor compressed_select(const Tensor& x, int64_t dim, int64_t index) {
  const SparseData& parts = compressed_parts("select", x);
  const int64_t d = wrap_dim(dim, x.dim()), batch = batch_dims(x), size = x.size(d);
  TERCEL_CHECK(index >= -size && index < size, IndexError, "select(): index ", index,
               " out of range for tensor of size ", x.sizes(), " at dimension ", d);
  const int64_t i = index < 0 ? index + size : index;
  if (d < batch) return batch_of(x, i, d);
  if (d >= batch + 2) {  // a dense dimension: values have nnz, and the sizes of blocks, in place of the matrix's two
    DimVector sizes(x.sizes());
    sizes.erase(sizes.begin() + d);
    const Tensor chosen = select(compressed_values(x), d - 1 + (is_blocked(x.layout()) ? 2 : 0), i);
    return compressed_of_values(x.layout(), parts.indices, parts.plain_indices, chosen, sizes);
  }
  TERCEL_CHECK(batch == 0, RuntimeError,
               "select(): selecting sparse dimensions is not supported for batched sparse compressed tensors.");
  if (d != (by_rows(x.layout()) ? 0 : 1) || is_blocked(x.layout()) || d > 1)
    return sparse_select(compressed_to_coo(x), d, i);
  // A compressed row (column): its entries lie together.
  const int64_t first = item(select(parts.indices, 0, i)).to_int64(),
                count = item(select(parts.indices, 0, i + 1)).to_int64() - first;
  DimVector sizes(x.sizes().subspan(1, x.sizes().size() - 1));
  sizes[0] = x.size(1 - d);
  const Tensor indices = to(unsqueeze(narrow(parts.plain_indices, 0, first, count), 0), kInt64);
  return coo_of_values(indices, narrow(compressed_values(x), 0, first, count), sizes,
                       sparse_ops::ascends(select(indices, 0, 0)));
}

Tensor compressed_sum(const Tensor& x, IntSpan dims, bool keepdim, ScalarType dtype) {
  compressed_parts("sum", x);
  if (dims.empty() && !keepdim) return sum(compressed_values(x), {}, false, dtype);
  TERCEL_CHECK(keepdim, RuntimeError, "reduction operations on CSR tensors with keepdim=False is unsupported");
  TERCEL_CHECK(x.dim() == 2, NotImplementedError,
               "reduction operations on CSR tensors with batch or dense dimensions are not supported");
  return to_sparse(sparse_sum(compressed_to_coo(x), dims, true, dtype), Layout::SparseCsr);
}

}  // namespace tercel
