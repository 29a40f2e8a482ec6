// Solutions of general and triangular linear systems, and inverses.
#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/lapack_impl.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/diagonals.h"

namespace tercel {

namespace linalg {

namespace {

Tensor plain_triangular(const Tensor& a, const Tensor& b, bool upper, bool unit) {
  const NoRecordGuard no_record;
  constexpr const char* kOp = "linalg.solve_triangular";
  const Tensor x = copy_columns(b);
  if (x.numel() == 0) return x;
  // LAPACK reads a row-major matrix as its transpose.
  const bool is_columns = transpose(a, -2, -1).is_contiguous(), transposed = !is_columns && a.is_contiguous();
  const Tensor columns = is_columns || transposed ? a : copy_columns(a);
  const Columns factors(columns), results(x);
  const int n = lapack::to_int(kOp, a.size(-1)), k = lapack::to_int(kOp, b.size(-1));
  lapack::require(kOp);
  visit_lapack_types(kOp, a.dtype(), [&]<class T> {
    for_each_matrix(results.count, static_cast<double>(n) * n * k, [&](int64_t i) {
      lapack::trsm(upper != transposed, transposed, unit, n, k, factors.at<T>(i), results.at<T>(i));
    });
  });
  return x;
}

}  // namespace

Tensor triangular(const Tensor& a, const Tensor& b, bool upper, bool unit) {
  Tensor out = plain_triangular(a, b, upper, unit);
  if (should_record(a, b))
    record("LinalgSolveTriangularBackward0", out, {a, b},
           [a = SavedTensor(a), out = SavedTensor::output(out), upper, unit](BackwardCall& call) {
             const Tensor gb = triangular(adjoint(a.get()), call.grad(), !upper, unit);
             if (call.needs(0)) {
               const Tensor ga = neg(matmul(gb, adjoint(out.get(call))));
               call.set(0, upper ? triu(ga, unit ? 1 : 0) : tril(ga, unit ? -1 : 0));
             }
             if (call.needs(1)) call.set(1, gb);
           });
  return out;
}

Tensor solve_triangular(const Tensor& a, const Tensor& B, bool upper, bool left, bool unitriangular) {
  check_square("linalg.solve_triangular", a);
  Tensor right = B;
  if (B.defined() && B.dtype() != a.dtype() && promote_types(a.dtype(), B.dtype()) == a.dtype())
    right = to(B, a.dtype());
  check_matrices("linalg.solve_triangular", right, "B");
  check_right_side("linalg.solve_triangular", a, right, left);
  if (!left) return adjoint(solve_triangular(adjoint(a), adjoint(right), !upper, true, unitriangular));
  Tensor factor = a;
  broadcast_batches(factor, right);
  return triangular(factor, right, upper, unitriangular);
}

}  // namespace linalg

TriangularSolveResult triangular_solve(const Tensor& input, const Tensor& A, bool upper, bool transposed,
                                       bool unitriangular) {
  if (!has_sparse(A)) check_strided("triangular_solve", A, "A");
  TERCEL_CHECK(input.dim() >= 2, RuntimeError,
               "triangular_solve: Expected b to have at least 2 dimensions, but it has ", input.dim(),
               " dimensions instead");
  TERCEL_CHECK(A.dim() >= 2, RuntimeError, "triangular_solve: Expected A to have at least 2 dimensions, but it has ",
               A.dim(), " dimensions instead");
  if (has_sparse(A))
    return {sparse_triangular_solve(input, A, upper, transposed, unitriangular),
            empty({0}, TensorOptions(A.dtype(), A.device()))};
  return {
      linalg::solve_triangular(transposed ? transpose(A, -2, -1) : A, input, upper != transposed, true, unitriangular),
      clone(A)};
}

namespace linalg {

namespace {

constexpr const char* kSingular = "The solver failed because the input matrix is singular.";

std::string singular_sentence(int32_t) { return kSingular; }

std::string inverse_sentence(int32_t k) {
  return str_cat({"The diagonal element ", k,
                  " is zero, the inversion could not be completed because the input matrix is singular."});
}

/** X with a X = b for the same batch; its gradient uses a's factors. `info` receives that of the factorization. */
Tensor solve_matrices(const char* op, const Tensor& a, const Tensor& b, Tensor& info) {
  Tensor out;
  LuFactorExResult factors;
  {
    const NoRecordGuard no_record;
    factors = plain_lu(op, a, true);
    info = factors.info;
    Tensor right = b, lu = factors.LU;
    broadcast_batches(lu, right);
    out = solve_factored(lu, expand(factors.pivots, batch_sizes(lu, {a.size(-1)})), right, false);
  }
  if (should_record(a, b))
    record("LinalgSolveExBackward0", out, {a, b},
           [a = SavedTensor(a), lu = SavedTensor(factors.LU), pivots = SavedTensor(factors.pivots),
            out = SavedTensor::output(out), sizes = DimVector(b.sizes())](BackwardCall& call) {
             Tensor gb;
             if (is_recording()) {
               // A second derivative needs a itself, since the factors have no history.
               gb = solve(adjoint(a.get()), call.grad());
             } else {
               Tensor factored = lu.get(), g = call.grad();
               broadcast_batches(factored, g);
               gb = solve_factored(factored, expand(pivots.get(), batch_sizes(factored, {g.size(-2)})), g, true);
             }
             if (call.needs(0)) call.set(0, sum_to_size(neg(matmul(gb, adjoint(out.get(call)))), a.get().sizes()));
             if (call.needs(1)) call.set(1, sum_to_size(gb, sizes));
           });
  return out;
}

Tensor solve_any(const char* op, const Tensor& a, const Tensor& b, bool left, Tensor& info) {
  check_square(op, a);
  check_strided(op, b, "B");
  const bool vector = is_vector_case(a, b);
  TERCEL_CHECK(!vector || left, RuntimeError, op,
               ": Vector broadcasting of the left hand side is not supported for left=False");
  const Tensor right = vector ? unsqueeze(b, -1) : b;
  check_matrices(op, right, "B");
  check_right_side(op, a, right, left);
  if (!left) return adjoint(solve_matrices(op, adjoint(a), adjoint(right), info));
  const Tensor out = solve_matrices(op, a, right, info);
  return vector ? squeeze(out, -1) : out;
}

}  // namespace

Tensor solve(const Tensor& A, const Tensor& B, bool left) {
  Tensor info;
  Tensor out = solve_any("linalg.solve", A, B, left, info);
  check_info("linalg.solve", info, singular_sentence);
  return out;
}

SolveExResult solve_ex(const Tensor& A, const Tensor& B, bool left, bool check_errors) {
  SolveExResult out;
  out.result = solve_any("linalg.solve", A, B, left, out.info);
  if (check_errors) check_info("linalg.solve_ex", out.info, singular_sentence);
  return out;
}

InvExResult inv_ex(const Tensor& A, bool check_errors) {
  check_square("linalg.inv", A);
  InvExResult out;
  {
    const NoRecordGuard no_record;
    const LuFactorExResult factors = plain_lu("linalg.inv", A, true);
    out.info = factors.info;
    const Tensor identity = expand(eye(A.size(-1), -1, A.options()), A.sizes());
    out.inverse = solve_factored(factors.LU, factors.pivots, identity, false);
  }
  if (check_errors) check_info("linalg.inv", out.info, inverse_sentence);
  if (should_record(A))
    record("LinalgInvExBackward0", out.inverse, {A}, [inverse = SavedTensor::output(out.inverse)](BackwardCall& call) {
      const Tensor i = adjoint(inverse.get(call));
      call.set(0, neg(matmul(i, matmul(call.grad(), i))));
    });
  return out;
}

Tensor inv(const Tensor& A) { return inv_ex(A, true).inverse; }

Tensor tensorinv(const Tensor& a, int64_t ind) {
  check_strided("linalg.tensorinv", a, "A");
  TERCEL_CHECK(ind > 0, RuntimeError, "Expected a strictly positive integer for 'ind'");
  const size_t cut = std::min(static_cast<size_t>(ind), a.sizes().size());
  const IntSpan front = a.sizes().subspan(0, cut), back = a.sizes().subspan(cut, a.sizes().size() - cut);
  const int64_t rows = numel_of(front), columns = numel_of(back);
  TERCEL_CHECK(rows == columns, RuntimeError,
               "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got ",
               columns, " != ", rows);
  DimVector sizes(back);
  for (const int64_t s : front) sizes.push_back(s);
  return reshape(inv(reshape(a, {rows, columns})), sizes);
}

Tensor tensorsolve(const Tensor& a, const Tensor& b, IntSpan dims) {
  check_strided("linalg.tensorsolve", a, "A");
  check_strided("linalg.tensorsolve", b, "B");
  Tensor moved = a;
  if (!dims.empty()) {
    DimVector order, last;
    for (const int64_t d : dims) last.push_back(wrap_dim(d, a.dim()));
    for (int64_t d = 0; d < a.dim(); ++d)
      if (std::find(last.begin(), last.end(), d) == last.end()) order.push_back(d);
    for (const int64_t d : last) order.push_back(d);
    moved = permute(a, order);
  }
  const size_t cut = std::min(b.sizes().size(), moved.sizes().size());
  const IntSpan back = moved.sizes().subspan(cut, moved.sizes().size() - cut);
  const int64_t columns = numel_of(back), rows = numel_of(moved.sizes().subspan(0, cut));
  TERCEL_CHECK(columns == rows && rows == b.numel(), RuntimeError,
               "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
               "prod(self.shape[:other.ndim]), but got ",
               columns, " != ", rows == columns ? b.numel() : rows);
  return reshape(solve(reshape(moved, {rows, columns}), reshape(b, {rows})), back);
}

}  // namespace linalg

}  // namespace tercel
