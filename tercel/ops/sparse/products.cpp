// Products of COO matrices.
#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/csr_impl.h"
#include "tercel/ops/sparse/factors_impl.h"
#include "tercel/ops/sparse/sparse.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

using sparse_ops::added;
using sparse_ops::adjoint_of;
using sparse_ops::check_factors;
using sparse_ops::coo_of_values;
using sparse_ops::csr_of_entries;
using sparse_ops::csr_rows;
using sparse_ops::csr_sampled_product;
using sparse_ops::csr_times_csr;
using sparse_ops::csr_times_dense;
using sparse_ops::CsrMatrix;
using sparse_ops::elements_at;
using sparse_ops::for_values;
using sparse_ops::make_coo;
using sparse_ops::parts_of;
using sparse_ops::recorded_values;
using sparse_ops::scaled;
using sparse_ops::unique_entries;

/** A matrix by rows; equal entries are added. */
CsrMatrix rows_of(const Tensor& x) {
  const SparseData& parts = parts_of("mm", x);
  return csr_of_entries("mm", select(parts.indices, 0, 0), select(parts.indices, 0, 1), parts.values, x.size(0),
                        x.size(1), kInt64);
}

Tensor times_dense(const Tensor& a, const Tensor& b) { return csr_times_dense("mm", rows_of(a), b); }

Tensor times_sparse(const Tensor& a, const Tensor& b) {
  const CsrMatrix out = csr_times_csr("mm", rows_of(a), rows_of(b));
  return make_coo(stack({csr_rows(out), out.columns}, 0), out.values, {a.size(0), b.size(1)}, true);
}

Tensor product(const Tensor& a, const Tensor& b) {
  if (!is_sparse(a.layout())) return contiguous(t(times_dense(transpose(b, 0, 1), contiguous(t(a)))));
  return is_sparse(b.layout()) ? times_sparse(a, b) : times_dense(a, b);
}

/** grad @ other at unique entries [2, nnz] in order: the gradient of a matrix with these entries. */
Tensor sampled(const Tensor& grad, const Tensor& other, const Tensor& at, IntSpan sizes) {
  if (is_sparse(grad.layout()) || is_sparse(other.layout()))
    return coo_of_values(at, elements_at(mm(grad, other), at, 2), sizes, true);
  Tensor values;
  {
    const NoRecordGuard no_record;
    const Tensor columns = select(at, 0, 1);
    CsrMatrix pattern = csr_of_entries("mm", select(at, 0, 0), columns, columns, sizes[0], sizes[1], kInt64);
    pattern.values = Tensor();
    values = csr_sampled_product("mm", pattern, grad, other);
  }
  if (should_record(grad, other))
    record("SampledAddmmBackward0", values, {grad, other},
           [at = SavedTensor(at), sizes = DimVector(sizes), left = SavedTensor::when(other.requires_grad(), grad),
            right = SavedTensor::when(grad.requires_grad(), other)](BackwardCall& call) {
             const Tensor g = coo_of_values(at.get(), call.grad(), sizes, true);
             if (call.needs(0)) call.set(0, tercel::mm(g, adjoint_of(right.get())));
             if (call.needs(1)) call.set(1, tercel::mm(adjoint_of(left.get()), g));
           });
  return coo_of_values(at, values, sizes, true);
}

/** `masked`: gradients of sparse factors have their pattern. */
Tensor recorded_product(const Tensor& a, const Tensor& b, bool masked) {
  check_factors(a, b);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = product(a, b);
  }
  if (!should_record(a, b)) return out;
  const auto pattern = [masked](const Tensor& x) {
    return masked && x.requires_grad() && is_sparse(x.layout()) ? SavedTensor(unique_entries("mm", x.detach()).indices)
                                                                : SavedTensor();
  };
  SavedTensor pattern_a = pattern(a);
  SavedTensor pattern_b = pattern(b);
  record(masked ? "SparseAddmmBackward0" : "MmBackward0", out, {a, b},
         [a = SavedTensor::when(b.requires_grad(), a), b = SavedTensor::when(a.requires_grad(), b),
          at_a = std::move(pattern_a), at_b = std::move(pattern_b), sizes_a = DimVector(a.sizes()),
          sizes_b = DimVector(b.sizes())](BackwardCall& call) {
           const Tensor g = call.grad();
           if (call.needs(0)) {
             const Tensor other = adjoint_of(b.get());
             call.set(0, at_a.defined() ? sampled(g, other, at_a.get(), sizes_a) : mm(g, other));
           }
           if (call.needs(1)) {
             const Tensor other = adjoint_of(a.get());
             call.set(1, at_b.defined() ? sampled(other, g, at_b.get(), sizes_b) : mm(other, g));
           }
         });
  return out;
}

}  // namespace

Tensor sparse::mm(const Tensor& mat1, const Tensor& mat2) {
  check_defined("sparse.mm", mat1, "mat1");
  check_defined("sparse.mm", mat2, "mat2");
  if (!has_sparse(mat1, mat2) || has_compressed(mat1, mat2)) return tercel::mm(mat1, mat2);
  return recorded_product(mat1, mat2, true);
}

Tensor sparse::addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha) {
  check_defined("sparse.addmm", input, "input");
  return added(input, scaled(sparse::mm(mat1, mat2), alpha), beta);
}

Tensor sparse_mm(const Tensor& a, const Tensor& b) {
  return has_compressed(a, b) ? compressed_mm(a, b) : recorded_product(a, b, false);
}

Tensor sparse_mv(const Tensor& a, const Tensor& b) {
  check_defined("mv", a, "self");
  check_defined("mv", b, "vec");
  if (is_compressed(a.layout())) return compressed_mv(a, b);
  TERCEL_CHECK(a.dim() == 2 && b.dim() == 1, RuntimeError,
               "mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: ", a.dim(), "Tensor Dim: ", b.dim());
  if (is_sparse(a.layout())) check_strided("mv", b, "vec");
  TERCEL_CHECK(a.size(1) == b.size(0), RuntimeError, "mv: expected self.size(-1) == vec.size(-1)");
  return squeeze(mm(a, unsqueeze(b, 1)), 1);
}

Tensor sparse_addmv(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  check_strided("addmv", input);
  return added(input, scaled(mv(a, b), alpha), beta);
}

Tensor sparse_bmm(const Tensor& given, const Tensor& b) {
  check_defined("bmm", given, "self");
  check_defined("bmm", b, "mat2");
  if (!is_sparse(given.layout())) refuse_layout("bmm", b.layout());
  const SparseData& checked = parts_of("bmm", given);
  check_strided("bmm", b, "mat2");
  TERCEL_CHECK(checked.sparse_dim == 3 && checked.dense_dim == 0, RuntimeError,
               "bmm_sparse: Tensor 'self' must have 3 sparse dims but got sparse_dim ", checked.sparse_dim,
               " and dense_dim ", checked.dense_dim);
  TERCEL_CHECK(b.dim() == 3 && given.size(0) == b.size(0) && given.size(2) == b.size(1), RuntimeError,
               "bmm_sparse: expected mat2 of sizes [", given.size(0), ", ", given.size(2), ", n] but got ", b.sizes());
  // One matrix with the batch's matrices along its diagonal.
  const Tensor x = for_values(given);
  const SparseData& parts = parts_of("bmm", x);
  const int64_t batch = x.size(0), rows = x.size(1), columns = x.size(2);
  sparse_ops::check_indices("bmm", parts.indices, x.sizes());  // one outside could be inside of the large matrix
  const Tensor of = select(parts.indices, 0, 0);
  const Tensor indices = cat({unsqueeze(add(mul(of, rows), select(parts.indices, 0, 1)), 0),
                              unsqueeze(add(mul(of, columns), select(parts.indices, 0, 2)), 0)},
                             0);
  const Tensor diagonal = coo_of_values(indices, recorded_values(x), {batch * rows, batch * columns}, parts.coalesced);
  const Tensor product = sparse::mm(diagonal, reshape(b, {batch * columns, b.size(2)}));
  return reshape(product, {batch, rows, b.size(2)});
}

Tensor sparse_matmul(const Tensor& a, const Tensor& b) {
  check_defined("matmul", a, "self");
  check_defined("matmul", b, "other");
  if (a.dim() == 2 && b.dim() == 2) return mm(a, b);
  if (a.dim() == 2 && b.dim() == 1) return mv(a, b);
  if (a.dim() == 1 && b.dim() == 2) return mv(transpose(b, 0, 1), a);
  if (a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && !is_sparse(b.layout())) return bmm(a, b);
  throw_error<NotImplementedError>(
      {"matmul: not implemented for sparse tensors of sizes ", a.sizes(), " and ", b.sizes()});
}

Tensor sparse_addmm(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  check_defined("addmm", input, "input");
  if (has_compressed(input, a, b)) return compressed_addmm(input, a, b, beta, alpha);
  return added(input, scaled(mm(a, b), alpha), beta);
}

}  // namespace tercel
