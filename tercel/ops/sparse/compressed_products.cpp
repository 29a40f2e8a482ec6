// Products of matrices of compressed layouts with each other, with strided matrices and with COO ones.
#include <algorithm>

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
#include "tercel/ops/views/views.h"
#include "tercel/util/profile.h"

namespace tercel {

using sparse_ops::by_rows;
using sparse_ops::compressed_values;
using sparse_ops::csr_sampled_product;
using sparse_ops::csr_times_csr;
using sparse_ops::csr_times_dense;
using sparse_ops::csr_transposed_times_dense;
using sparse_ops::CsrMatrix;
using sparse_ops::elements_at_pattern;
using sparse_ops::is_blocked;
using sparse_ops::layout_word;
using sparse_ops::matrix_of;
using sparse_ops::tensor_of;
using sparse_ops::with_values;

namespace {

Tensor adjoint_of(const Tensor& x) {
  const Tensor turned = transpose(x, 0, 1);
  if (!x.is_complex()) return turned;
  return is_compressed(x.layout()) ? with_values(turned, conj(compressed_values(turned))) : conj(turned);
}

/** A strided matrix as it is, others as CSR or CSC. */
Tensor plain(const Tensor& x) {
  if (x.layout() == Layout::SparseCoo) return to_sparse_csr(x);
  if (x.layout() == Layout::SparseBsr) return to_sparse_csr(x);
  return x.layout() == Layout::SparseBsc ? to_sparse_csc(x) : x;
}

void check_matrix(const Tensor& x) {
  if (is_compressed(x.layout()))
    TERCEL_CHECK(x.dim() == 2, NotImplementedError, "mm: expected a matrix but got a tensor of layout ",
                 to_string(x.layout()), " with sizes ", x.sizes());
  else if (x.layout() == Layout::SparseCoo)
    TERCEL_CHECK(sparse_dim(x) == 2 && x.dim() == 2, RuntimeError, "addmm: matrices expected, got ", sparse_dim(x),
                 "D tensor");
  else
    check_strided("mm", x);
  TERCEL_CHECK(x.dim() == 2, RuntimeError, "addmm: matrices expected, got ", x.dim(), "D tensor");
}

void check_factors(const Tensor& a, const Tensor& b) {
  check_defined("mm", a, "mat1");
  check_defined("mm", b, "mat2");
  check_matrix(a);
  check_matrix(b);
  TERCEL_CHECK(a.size(1) == b.size(0), RuntimeError, "addmm: mat1 and mat2 shapes cannot be multiplied (", a.size(0),
               "x", a.size(1), " and ", b.size(0), "x", b.size(1), ")");
  TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, "expected scalar type ", scalar_type_word(a.dtype()),
               " but found ", scalar_type_word(b.dtype()));
}

Tensor sparse_product(const Tensor& a, const Tensor& b) {
  const DimVector sizes{a.size(0), b.size(1)};
  const bool by_columns = a.layout() == Layout::SparseCsc && b.layout() == Layout::SparseCsc;
  CsrMatrix left = matrix_of(by_columns ? b : to_sparse_csr(a)), right = matrix_of(by_columns ? a : to_sparse_csr(b));
  sparse_ops::share_index_dtype(left, right);
  return tensor_of(by_columns ? Layout::SparseCsc : Layout::SparseCsr, csr_times_csr("mm", left, right), sizes);
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
  const auto times = [](const Tensor& x, Scalar factor) {
    return factor.is_integral() && factor.to_int64() == 1 ? x : mul(x, factor);
  };
  const Tensor product = times(mm(a, b), alpha);
  TERCEL_CHECK(is_sparse(input.layout()) == is_sparse(product.layout()), NotImplementedError,
               "addmm: computation on CPU is not implemented for ", layout_word(input.layout()), " + ",
               layout_word(a.layout()), " @ ", layout_word(b.layout()));
  const Tensor summand = is_sparse(input.layout()) ? input : expand(input, product.sizes());
  if (equals(beta, 0)) return product;
  return add(times(summand, beta), product);
}

Tensor sparse::sampled_addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha) {
  check_defined("sampled_addmm", input, "self");
  check_strided("sampled_addmm", mat1, "mat1");
  check_strided("sampled_addmm", mat2, "mat2");
  TERCEL_CHECK(input.layout() == Layout::SparseCsr, RuntimeError,
               "sampled_addmm: Expected self to have sparse csr layout, but got ", layout_word(input.layout()));
  TERCEL_CHECK(input.dim() == 2 && mat1.dim() == 2 && mat2.dim() == 2, NotImplementedError,
               "sampled_addmm: expected matrices but got sizes ", input.sizes(), ", ", mat1.sizes(), " and ",
               mat2.sizes());
  TERCEL_CHECK(mat1.size(1) == mat2.size(0), RuntimeError, "sampled_addmm: mat1 and mat2 shapes cannot be multiplied (",
               mat1.size(0), "x", mat1.size(1), " and ", mat2.size(0), "x", mat2.size(1), ")");
  TERCEL_CHECK(input.size(0) == mat1.size(0), RuntimeError,
               "sampled_addmm: self.shape[-2] must match mat1.shape[-2], but got ", input.size(0), " and ",
               mat1.size(0));
  TERCEL_CHECK(input.size(1) == mat2.size(1), RuntimeError,
               "sampled_addmm: self.shape[-1] must match mat2.shape[-1], but got ", input.size(1), " and ",
               mat2.size(1));
  TERCEL_CHECK(mat1.dtype() == mat2.dtype(), RuntimeError,
               "sampled_addmm: Expected mat1 and mat2 to have the same dtype, but got ", scalar_type_word(mat1.dtype()),
               " and ", scalar_type_word(mat2.dtype()));
  TERCEL_CHECK(mat1.dtype() == input.dtype(), RuntimeError,
               "sampled_addmm: Expected mat1 and self to have the same dtype, but got ", scalar_type_word(mat1.dtype()),
               " and ", scalar_type_word(input.dtype()));
  const Tensor products = mul(sampled_values(input.detach(), mat1, mat2), alpha);
  return with_values(input, equals(beta, 0) ? products : add(mul(compressed_values(input), beta), products));
}

}  // namespace tercel
