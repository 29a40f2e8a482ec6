// Cholesky factorization, and solving with its factor.
#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/lapack_impl.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/views/diagonals.h"

namespace tercel {

namespace linalg {

namespace {

CholeskyResult plain_cholesky(const char* op, const Tensor& a) {
  const NoRecordGuard no_record;
  CholeskyResult out;
  out.info = zeros(batch_sizes(a), TensorOptions(kInt32));
  // LAPACK reads a row-major matrix as its transpose, so its lower triangle is LAPACK's upper one, also in the factor.
  out.L = tril(a);
  if (a.numel() == 0) return out;
  const int n = lapack::to_int(op, a.size(-1));
  const Columns matrices(out.L);
  auto* info = out.info.data<int32_t>();
  lapack::require(op);
  visit_lapack_types(op, a.dtype(), [&]<class T> {
    for_each_matrix(matrices.count, cubed(n), [&](int64_t i) {
      T* factor = matrices.at<T>(i);
      info[i] = lapack::potrf(/*upper=*/true, n, factor);
      // OpenBLAS treats a NaN pivot as positive and continues.
      for (int k = 0; info[i] == 0 && k < n; ++k)
        if (const T d = factor[k * int64_t{n} + k]; d != d) info[i] = k + 1;
    });
  });
  return out;
}

/** Phi of a matrix: its lower triangle, with the diagonal halved. */
Tensor half_triangle(const Tensor& x) { return mul(add(tril(x), tril(x, -1)), 0.5); }

CholeskyResult lower_cholesky(const char* op, const Tensor& a) {
  CholeskyResult out = plain_cholesky(op, a);
  if (should_record(a))
    record("LinalgCholeskyExBackward0", out.L, {a}, [l = SavedTensor::output(out.L)](BackwardCall& call) {
      const Tensor factor = l.get(call);
      const Tensor phi = half_triangle(matmul(adjoint(factor), call.grad()));
      const Tensor left = solve_triangular(adjoint(factor), phi, /*upper=*/true);
      const Tensor g = solve_triangular(factor, left, /*upper=*/false, /*left=*/false);
      call.set(0, mul(add(g, adjoint(g)), 0.5));
    });
  return out;
}

std::string not_positive_sentence(int32_t k) {
  return str_cat(
      {"The factorization could not be completed because the input is not positive-definite (the leading "
       "minor of order ",
       k, " is not positive-definite)."});
}

}  // namespace

CholeskyResult cholesky_ex(const Tensor& a, bool upper, bool check_errors) {
  check_square("linalg.cholesky", a);
  // Only one triangle is read: U from the upper triangle is the adjoint of L from the adjoint's lower triangle.
  CholeskyResult out = lower_cholesky("linalg.cholesky", upper ? adjoint(a) : a);
  if (check_errors) check_info("linalg.cholesky", out.info, not_positive_sentence);
  if (upper) out.L = adjoint(out.L);
  return out;
}

Tensor cholesky(const Tensor& a, bool upper) { return cholesky_ex(a, upper, true).L; }

}  // namespace linalg

Tensor cholesky_solve(const Tensor& input, const Tensor& input2, bool upper) {
  linalg::check_square("cholesky_solve", input2, "A");
  check_strided("cholesky_solve", input);
  TERCEL_CHECK(input.dim() >= 2, RuntimeError, "b should have at least 2 dimensions, but has ", input.dim(),
               " dimensions instead");
  check_same_dtype("cholesky_solve", input, input2);
  TERCEL_CHECK(input.size(-2) == input2.size(-2), RuntimeError,
               "Incompatible matrix sizes for cholesky_solve: each A matrix is ", input2.size(-1), " by ",
               input2.size(-1), " but each b matrix is ", input.size(-2), " by ", input.size(-1));
  const Tensor l = upper ? adjoint(input2) : input2;
  return linalg::solve_triangular(adjoint(l), linalg::solve_triangular(l, input, false), true);
}

Tensor cholesky_inverse(const Tensor& input, bool upper) {
  linalg::check_square("cholesky_inverse", input, "A");
  if (input.numel() > 0) {
    const NoRecordGuard no_record;
    const Tensor zeros = contiguous(eq(diagonal(input, 0, -2, -1), 0));
    const int64_t n = input.size(-1);
    const auto* found = static_cast<const bool*>(zeros.data_ptr());
    for (int64_t i = 0; i < zeros.numel(); ++i)
      if (found[i])
        linalg::refuse_matrix(
            "cholesky_inverse", select(zeros, -1, 0), i / n,
            str_cat({"The diagonal element ", i % n + 1, " is zero, the inversion could not be completed."}));
  }
  return cholesky_solve(eye(input.size(-1), -1, input.options()), input, upper);
}

}  // namespace tercel
