// Linear systems with a triangle of a compressed matrix.
#include <algorithm>
#include <limits>
#include <vector>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/compressed.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

using sparse_ops::by_rows;
using sparse_ops::compressed_values;
using sparse_ops::CsrMatrix;
using sparse_ops::matrix_of;
using sparse_ops::with_index;
using sparse_ops::with_values;

namespace {

constexpr const char* kOp = "triangular_solve";

/** Which system a triangle is solved for. */
struct System {
  bool upper, transposed, unit;
};

/**
 * Solves in place for columns [begin, end) of x [rows, n]. Rows of A are read in the order in which unknowns become
 * known; of the transpose, a row of A is a column, which is subtracted from what remains.
 */
template <class T, class I>
void solve_columns(const CsrMatrix& a, System system, const Tensor& out, int64_t begin, int64_t end) {
  const I *offsets = static_cast<const I*>(a.offsets.data_ptr()),
          *columns = static_cast<const I*>(a.columns.data_ptr());
  const T* values = static_cast<const T*>(a.values.data_ptr());
  T* x = out.data<T>();
  const int64_t rows = a.num_rows(), n = out.size(1);
  const bool backward = system.upper != system.transposed;
  for (int64_t step = 0; step < rows; ++step) {
    const int64_t r = backward ? rows - 1 - step : step;
    T* row = x + r * n;
    T diagonal{};
    const auto divide = [&] {
      for (int64_t j = begin; j < end && !system.unit; ++j) row[j] = row[j] / diagonal;
    };
    const auto first = static_cast<int64_t>(offsets[r]), last = static_cast<int64_t>(offsets[r + 1]);
    for (int64_t e = first; e < last; ++e)
      if (static_cast<int64_t>(columns[e]) == r) diagonal = diagonal + values[e];
    if (system.transposed) divide();
    for (int64_t e = first; e < last; ++e) {
      const auto c = static_cast<int64_t>(columns[e]);
      if (system.upper ? c <= r : c >= r) continue;
      const T value = values[e];
      T *from = system.transposed ? row : x + c * n, *to = system.transposed ? x + c * n : row;
      for (int64_t j = begin; j < end; ++j) to[j] = to[j] - value * from[j];
    }
    if (!system.transposed) divide();
  }
}

/** Of a CSR matrix and b [rows, n]. */
Tensor plain_solution(const Tensor& b, const Tensor& A, System system) {
  const CsrMatrix a = sparse_ops::checked_csr(kOp, matrix_of(A));
  sparse_ops::check_columns(kOp, a);
  // PyTorch's result of a matrix without entries, whatever its diagonal is said to be.
  if (a.nnz() == 0) return full(b.sizes(), std::numeric_limits<double>::quiet_NaN(), TensorOptions(b.dtype()));
  Tensor out = empty(b.sizes(), TensorOptions(b.dtype()));
  out.copy_(b);
  constexpr int64_t kColumns = 8;  // of a task: a line of the caches
  const int64_t groups = (out.size(1) + kColumns - 1) / kColumns;
  visit_types<float, double, Complex<float>, Complex<double>>(kOp, b.dtype(), [&]<class T> {
    with_index(a.index_dtype(), [&]<class I> {
      const int64_t grain = std::max<int64_t>(1, 32768 / (kColumns * std::max<int64_t>(1, a.nnz())));
      parallel_for(0, groups, grain, [&](int64_t begin, int64_t end) {
        solve_columns<T, I>(a, system, out, begin * kColumns, std::min(end * kColumns, out.size(1)));
      });
    });
  });
  return out;
}

/** 1 at the entries of a CSR matrix that the system reads, else 0. */
Tensor read_entries(const Tensor& A, System system) {
  const CsrMatrix a = matrix_of(A);
  const Tensor distance = sub(to(a.columns, kInt64), to(sparse_ops::csr_rows(a), kInt64));
  const int64_t nearest = system.unit ? 1 : 0;
  return to(system.upper ? ge(distance, nearest) : le(distance, -nearest), A.dtype());
}

Tensor solution(const Tensor& b, const Tensor& A, System system) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = plain_solution(b, A, system);
  }
  if (should_record(b, A))
    record("TriangularSolveBackward0", out, {b, A},
           [A = SavedTensor(A), out = SavedTensor::output(out), system](BackwardCall& call) {
             const auto conjugate = [](const Tensor& x) { return x.is_complex() ? conj(x) : x; };
             const Tensor a = A.get(), x = out.get(call);
             const System adjoint{system.upper, !system.transposed, system.unit};
             const Tensor gb = conjugate(solution(conjugate(call.grad()), a, adjoint));
             if (call.needs(0)) call.set(0, gb);
             if (call.needs(1)) {
               const Tensor left = system.transposed ? conjugate(x) : gb, right = system.transposed ? gb : conjugate(x);
               const Tensor pattern = with_values(a.detach(), zeros(a.impl().sparse()->values.sizes(), a.dtype()));
               const Tensor g = sparse::sampled_addmm(pattern, left, t(right), 0, -1);
               call.set(1, with_values(g, mul(compressed_values(g), read_entries(a, system))));
             }
           });
  return out;
}

}  // namespace

Tensor sparse_triangular_solve(const Tensor& b, const Tensor& A, bool upper, bool transposed, bool unitriangular) {
  sparse_ops::compressed_parts(kOp, A);
  check_strided(kOp, b, "b");
  TERCEL_CHECK(dense_dim(A) == 0, NotImplementedError, "triangular_solve: not implemented for a matrix of layout ",
               to_string(A.layout()), " with dense dimensions");
  TERCEL_CHECK(A.size(-2) == A.size(-1), RuntimeError,
               "triangular_solve: A must be batches of square matrices, but they are ", A.size(-2), " by ", A.size(-1),
               " matrices");
  TERCEL_CHECK(b.dtype() == A.dtype(), RuntimeError,
               "triangular_solve: Expected b and A to have the same dtype, but found b of type ",
               scalar_type_word(b.dtype()), " and A of type ", scalar_type_word(A.dtype()), " instead.");
  TERCEL_CHECK(A.size(-1) == b.size(-2), RuntimeError,
               "Incompatible matrix sizes for triangular_solve: each A matrix is ", A.size(-2), " by ", A.size(-1),
               " but each b matrix is ", b.size(-2), " by ", b.size(-1));
  if (A.dim() == 2 && b.dim() == 2) {
    // Columns of A are rows of its transpose, which has the other triangle.
    if (!by_rows(A.layout())) return sparse_triangular_solve(b, transpose(A, 0, 1), !upper, !transposed, unitriangular);
    return solution(b, to_sparse_csr(A), {upper, transposed, unitriangular});
  }
  TERCEL_CHECK(A.dim() == 2 || (A.dim() == b.dim() && A.size(0) == b.size(0)), RuntimeError,
               "triangular_solve: expected b with the batch dimensions of A, of sizes ", A.sizes(), ", but got sizes ",
               b.sizes());
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < b.size(0); ++i)
    parts.push_back(sparse_triangular_solve(select(b, 0, i), A.dim() == 2 ? A : sparse_ops::batch_of(A, i), upper,
                                            transposed, unitriangular));
  return parts.empty() ? clone(b) : stack(parts, 0);
}

}  // namespace tercel
