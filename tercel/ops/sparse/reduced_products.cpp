// Products of a CSR and a strided matrix whose terms are reduced by their mean, maximum or minimum.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tercel/core/scalar_type.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/sparse.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

using sparse_ops::check_columns;
using sparse_ops::checked_csr;
using sparse_ops::compressed_values;
using sparse_ops::CsrMatrix;
using sparse_ops::matrix_of;
using sparse_ops::with_index;

namespace {

/** The entry [rows, n] whose product with each column of `dense` is the largest (smallest); -1 for empty rows. */
template <class T, class I>
void find_extremes(const CsrMatrix& a, const Tensor& dense, bool largest, const Tensor& out) {
  const I *offsets = static_cast<const I*>(a.offsets.data_ptr()),
          *columns = static_cast<const I*>(a.columns.data_ptr());
  const T *values = static_cast<const T*>(a.values.data_ptr()), *elements = static_cast<const T*>(dense.data_ptr());
  const int64_t n = dense.size(1);
  auto* to = out.data<int64_t>();
  const int64_t work = std::max<int64_t>(1, a.nnz() / std::max<int64_t>(1, a.num_rows()) * n);
  parallel_for(0, a.num_rows(), std::max<int64_t>(1, 16384 / work), [&](int64_t begin, int64_t end) {
    std::vector<double> best(static_cast<size_t>(n));
    for (int64_t r = begin; r < end; ++r) {
      const auto first = static_cast<int64_t>(offsets[r]), last = static_cast<int64_t>(offsets[r + 1]);
      for (int64_t j = 0; j < n; ++j) to[r * n + j] = -1;
      for (int64_t e = first; e < last; ++e)
        for (int64_t j = 0; j < n; ++j) {
          const auto term =
              static_cast<double>(static_cast<T>(values[e] * elements[static_cast<int64_t>(columns[e]) * n + j]));
          double& kept = best[static_cast<size_t>(j)];
          if (e == first || std::isnan(term) || (largest ? term > kept : term < kept)) {
            kept = term;
            to[r * n + j] = e;
          }
        }
    }
  });
}

Tensor extremes(const Tensor& mat1, const Tensor& mat2, bool largest) {
  const CsrMatrix a = checked_csr("sparse.mm", matrix_of(mat1.detach()));
  check_columns("sparse.mm", a);
  const int64_t rows = a.num_rows(), n = mat2.size(1);
  const Tensor at = empty({rows, n}, kInt64);
  if (a.nnz() == 0 || n == 0) return zeros({rows, n}, TensorOptions(mat1.dtype(), mat1.device()));
  const Tensor dense = contiguous(mat2.detach());
  visit_floating_types("sparse.mm", mat1.dtype(), [&]<class T> {
    with_index(a.index_dtype(), [&]<class I> { find_extremes<T, I>(a, dense, largest, at); });
  });
  // The rest is a composition of differentiable ops on the chosen entries.
  const Tensor is_empty = lt(at, 0), entry = reshape(masked_fill(at, is_empty, 0), {rows * n});
  const Tensor columns = reshape(index_select(to(a.columns, kInt64), 0, entry), {rows, n});
  const Tensor factors = reshape(index_select(compressed_values(mat1), 0, entry), {rows, n});
  return masked_fill(mul(factors, gather(mat2, 0, columns)), is_empty, 0);
}

}  // namespace

Tensor sparse::mm(const Tensor& mat1, const Tensor& mat2, std::string_view reduce) {
  check_defined("sparse.mm", mat1, "mat1");
  check_defined("sparse.mm", mat2, "mat2");
  TERCEL_CHECK(reduce != "prod", RuntimeError, "sparse_mm_reduce: reduce type of prod has not been enabled.");
  TERCEL_CHECK(reduce == "sum" || reduce == "mean" || reduce == "amax" || reduce == "amin", RuntimeError,
               "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  TERCEL_CHECK(mat1.layout() == Layout::SparseCsr && mat2.layout() == Layout::Strided, NotImplementedError,
               "sparse.mm with reduce: expected mat1 of layout sparse_csr and mat2 of layout strided but got ",
               to_string(mat1.layout()), " and ", to_string(mat2.layout()));
  TERCEL_CHECK(mat1.dim() == 2 && mat2.dim() == 2 && mat1.size(1) == mat2.size(0), RuntimeError,
               "sparse.mm: mat1 and mat2 shapes cannot be multiplied (", mat1.sizes(), " and ", mat2.sizes(), ")");
  TERCEL_CHECK(mat1.dtype() == mat2.dtype() && is_floating(mat1.dtype()), RuntimeError,
               "sparse.mm with reduce: expected matrices of one floating dtype but got ", to_string(mat1.dtype()),
               " and ", to_string(mat2.dtype()));
  if (reduce == "amax" || reduce == "amin") return extremes(mat1, mat2, reduce == "amax");
  const Tensor total = tercel::mm(mat1, mat2);
  if (reduce == "sum") return total;
  const Tensor& offsets = mat1.impl().sparse()->indices;
  const int64_t rows = mat1.size(0);
  const Tensor entries = sub(narrow(offsets, 0, 1, rows), narrow(offsets, 0, 0, rows));
  return div(total, unsqueeze(to(masked_fill(entries, eq(entries, 0), 1), total.dtype()), 1));
}

}  // namespace tercel
