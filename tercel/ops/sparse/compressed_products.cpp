// Products of matrices of compressed layouts with each other, with strided matrices and with COO ones.
#include <utility>
#include <vector>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/sparse/compressed.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/factors_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/profile.h"

namespace tercel {

using sparse_ops::added;
using sparse_ops::adjoint_of;
using sparse_ops::by_rows;
using sparse_ops::check_factors;
using sparse_ops::compressed_values;
using sparse_ops::csr_sampled_product;
using sparse_ops::csr_times_csr;
using sparse_ops::csr_times_dense;
using sparse_ops::csr_transposed_times_dense;
using sparse_ops::CsrMatrix;
using sparse_ops::elements_at_pattern;
using sparse_ops::in_layout_of;
using sparse_ops::is_blocked;
using sparse_ops::layout_word;
using sparse_ops::matrix_of;
using sparse_ops::scaled;
using sparse_ops::tensor_of;
using sparse_ops::with_values;

namespace {

/** A strided matrix as it is, others as CSR or CSC. */
Tensor plain(const Tensor& x) {
  if (x.layout() == Layout::SparseCoo) return to_sparse_csr(x);
  if (x.layout() == Layout::SparseBsr) return to_sparse_csr(x);
  return x.layout() == Layout::SparseBsc ? to_sparse_csc(x) : x;
}

/** CSR, as in PyTorch whatever the layouts are. */
Tensor sparse_product(const Tensor& a, const Tensor& b) {
  CsrMatrix left = matrix_of(to_sparse_csr(a)), right = matrix_of(to_sparse_csr(b));
  sparse_ops::share_index_dtype(left, right);
  return tensor_of(Layout::SparseCsr, csr_times_csr("mm", left, right), {a.size(0), b.size(1)});
}

Tensor product(const Tensor& a, const Tensor& b) {
  if (!is_sparse(b.layout())) {
    if (a.layout() == Layout::SparseCsr) return csr_times_dense("mm", matrix_of(a), b);
    return csr_transposed_times_dense("mm", matrix_of(a), b);
  }
  if (is_sparse(a.layout())) return sparse_product(a, b);
  const Tensor turned = b.layout() == Layout::SparseCsc ? csr_times_dense("mm", matrix_of(b), t(a))
                                                        : csr_transposed_times_dense("mm", matrix_of(b), t(a));
  return contiguous(t(turned));
}

/** left @ right, strided, at the entries of a CSR or CSC matrix: [nnz], recorded. */
Tensor sampled_values(const Tensor& pattern, const Tensor& left, const Tensor& right) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    CsrMatrix a = matrix_of(pattern);
    a.values = Tensor();
    out = by_rows(pattern.layout()) ? csr_sampled_product("sampled_addmm", a, left, right)
                                    : csr_sampled_product("sampled_addmm", a, t(right), t(left));
  }
  if (should_record(left, right))
    record("SampledAddmmBackward0", out, {left, right},
           [pattern = SavedTensor(pattern.detach()), left = SavedTensor::when(right.requires_grad(), left),
            right = SavedTensor::when(left.requires_grad(), right)](BackwardCall& call) {
             const Tensor g = with_values(pattern.get(), call.grad());
             if (call.needs(0)) call.set(0, mm(g, adjoint_of(right.get())));
             if (call.needs(1)) call.set(1, mm(adjoint_of(left.get()), g));
           });
  return out;
}

/** The gradient of a factor: left @ right at its entries. */
Tensor gradient_at(const Tensor& factor, const Tensor& left, const Tensor& right) {
  const Tensor pattern = factor.detach();
  if (is_sparse(left.layout()) || is_sparse(right.layout()) || is_blocked(factor.layout()))
    return with_values(pattern, elements_at_pattern(mm(left, right), pattern));
  return with_values(pattern, sampled_values(pattern, left, right));
}

}  // namespace

Tensor compressed_mm(const Tensor& a, const Tensor& b) {
  const ProfileRange range("mm", RangeKind::Op);
  check_factors(a, b);
  // Conversions are recorded: the product is one of CSR, CSC and strided matrices.
  const Tensor x = plain(a), y = plain(b);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = product(x, y);
  }
  if (should_record(x, y))
    record("MmBackward0", out, {x, y}, [x = SavedTensor(x), y = SavedTensor(y)](BackwardCall& call) {
      const Tensor g = call.grad();
      if (call.needs(0)) {
        const Tensor factor = x.get(), other = adjoint_of(y.get());
        call.set(0, is_compressed(factor.layout()) ? gradient_at(factor, g, other) : mm(g, other));
      }
      if (call.needs(1)) {
        const Tensor factor = y.get(), other = adjoint_of(x.get());
        call.set(1, is_compressed(factor.layout()) ? gradient_at(factor, other, g) : mm(other, g));
      }
    });
  return out;
}

Tensor compressed_mv(const Tensor& a, const Tensor& b) {
  check_strided("mv", b, "vec");
  TERCEL_CHECK(a.dim() == 2 && b.dim() == 1, RuntimeError, "vector + matrix @ vector expected, got 1, ", a.dim(), ", ",
               b.dim());
  TERCEL_CHECK(a.size(1) == b.size(0), RuntimeError, "size mismatch, got input (", a.size(0), "), mat (", a.size(0),
               "x", a.size(1), "), vec (", b.size(0), ")");
  return squeeze(compressed_mm(a, unsqueeze(b, 1)), 1);
}

Tensor compressed_addmm(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  // A sum with an input by columns is by columns, so the product is computed as the transpose of one by rows.
  const bool by_columns = is_compressed(input.layout()) && !by_rows(input.layout()) && has_sparse(a) && has_sparse(b);
  Tensor product = by_columns ? t(mm(t(b), t(a))) : mm(a, b);
  TERCEL_CHECK(!is_sparse(input.layout()) || is_sparse(product.layout()), NotImplementedError,
               "addmm: computation on CPU is not implemented for ", layout_word(input.layout()), " + ",
               layout_word(a.layout()), " @ ", layout_word(b.layout()));
  if (!is_sparse(input.layout()))
    product = to_dense(product);
  else if (is_compressed(input.layout()))
    product = in_layout_of(product, input);
  return added(input, scaled(product, alpha), beta);
}

namespace {

/** The sizes before the matrix. */
IntSpan batch_sizes(const Tensor& x) { return x.sizes().subspan(0, x.sizes().size() - 2); }

void check_sampled(const Tensor& input, const Tensor& mat1, const Tensor& mat2) {
  constexpr const char* kOp = "sampled_addmm";
  check_defined(kOp, input, "self");
  check_strided(kOp, mat1, "mat1");
  check_strided(kOp, mat2, "mat2");
  TERCEL_CHECK(input.layout() == Layout::SparseCsr, RuntimeError,
               "sampled_addmm: Expected self to have sparse csr layout, but got ", layout_word(input.layout()));
  TERCEL_CHECK(dense_dim(input) == 0, RuntimeError,
               "sampled_addmm: Expected self to have no dense dimensions, but got ", dense_dim(input));
  for (const auto& [factor, name] : {std::pair{&mat1, "mat1"}, {&mat2, "mat2"}})
    TERCEL_CHECK(factor->dim() >= 2, RuntimeError, "sampled_addmm: Expected ", name, " to be a matrix, got ",
                 factor->dim(), "-D tensor");
  TERCEL_CHECK(batch_sizes(mat1) == batch_sizes(mat2), RuntimeError,
               "sampled_addmm: Expected mat1 and mat2 to have the same batch size, but got ", batch_sizes(mat1),
               " and ", batch_sizes(mat2));
  TERCEL_CHECK(input.dim() == 2 || batch_sizes(input) == batch_sizes(mat1), RuntimeError,
               "sampled_addmm: Expected self and mat1 to have the same batch size, but got ", batch_sizes(input),
               " and ", batch_sizes(mat1));
  TERCEL_CHECK(mat1.size(-1) == mat2.size(-2), RuntimeError,
               "sampled_addmm: mat1 and mat2 shapes cannot be multiplied (", mat1.size(-2), "x", mat1.size(-1), " and ",
               mat2.size(-2), "x", mat2.size(-1), ")");
  TERCEL_CHECK(input.size(-2) == mat1.size(-2), RuntimeError,
               "sampled_addmm: self.shape[-2] must match mat1.shape[-2], but got ", input.size(-2), " and ",
               mat1.size(-2));
  TERCEL_CHECK(input.size(-1) == mat2.size(-1), RuntimeError,
               "sampled_addmm: self.shape[-1] must match mat2.shape[-1], but got ", input.size(-1), " and ",
               mat2.size(-1));
  TERCEL_CHECK(mat1.dtype() == mat2.dtype(), RuntimeError,
               "sampled_addmm: Expected mat1 and mat2 to have the same dtype, but got ", scalar_type_word(mat1.dtype()),
               " and ", scalar_type_word(mat2.dtype()));
  TERCEL_CHECK(mat1.dtype() == input.dtype(), RuntimeError,
               "sampled_addmm: Expected mat1 and self to have the same dtype, but got ", scalar_type_word(mat1.dtype()),
               " and ", scalar_type_word(input.dtype()));
}

/** A CSR matrix as a batch of these sizes; recorded. */
Tensor expanded(const Tensor& x, IntSpan batch) {
  const SparseData& parts = *x.impl().sparse();
  const auto sizes_of = [batch](IntSpan sizes) {
    DimVector out(batch);
    for (const int64_t size : sizes) out.push_back(size);
    return out;
  };
  const auto expand_part = [&](const Tensor& part) { return expand(part, sizes_of(part.sizes())); };
  return sparse_ops::compressed_of_values(x.layout(), expand_part(parts.indices), expand_part(parts.plain_indices),
                                          expand_part(compressed_values(x)), sizes_of(x.sizes()));
}

Tensor sampled_sum(const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha) {
  if (input.dim() == 2) {
    const Tensor products = scaled(sampled_values(input.detach(), mat1, mat2), alpha);
    return with_values(input, equals(beta, 0) ? products : add(scaled(compressed_values(input), beta), products));
  }
  std::vector<Tensor> sums;
  for (int64_t i = 0; i < input.size(0); ++i)
    sums.push_back(sampled_sum(sparse_ops::batch_of(input, i), select(mat1, 0, i), select(mat2, 0, i), beta, alpha));
  return sums.empty() ? with_values(input, clone(compressed_values(input))) : sparse_ops::stack_batches(sums);
}

}  // namespace

Tensor sparse::sampled_addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha) {
  check_sampled(input, mat1, mat2);
  const bool repeats = input.dim() == 2 && mat1.dim() > 2;
  return sampled_sum(repeats ? expanded(input, batch_sizes(mat1)) : input, mat1, mat2, beta, alpha);
}

}  // namespace tercel
