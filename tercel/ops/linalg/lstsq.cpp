// Least squares.
#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/lapack_impl.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/reduce/reduce.h"

namespace tercel::linalg {

namespace {

lapack::LeastSquares parse_driver(std::string_view name) {
  if (name == "gels") return lapack::LeastSquares::Gels;
  if (name == "gelsy") return lapack::LeastSquares::Gelsy;
  if (name == "gelsd") return lapack::LeastSquares::Gelsd;
  TERCEL_CHECK(name == "gelss", RuntimeError,
               "linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but got ", name);
  return lapack::LeastSquares::Gelss;
}

/** The solution [..., n, columns], and the rank and singular values if the driver computes them. Not recorded. */
LstsqResult plain_lstsq(const Tensor& a, const Tensor& b, double rcond, lapack::LeastSquares driver) {
  constexpr const char* kOp = "linalg.lstsq";
  const NoRecordGuard no_record;
  const int64_t m = a.size(-2), n = a.size(-1), columns = b.size(-1), k = std::min(m, n);
  check_finite(kOp, a, kNotFinite);
  const Tensor work = copy_columns(a), right = empty_columns(batch_sizes(a, {std::max(m, n), columns}), a.options());
  zero_(right);
  narrow(right, -2, 0, m).copy_(b);
  const Tensor info = zeros(batch_sizes(a), TensorOptions(kInt32)), rank = zeros(batch_sizes(a), TensorOptions(kInt32));
  const bool values = driver == lapack::LeastSquares::Gelsd || driver == lapack::LeastSquares::Gelss;
  LstsqResult out;
  out.singular_values = values ? zeros(batch_sizes(a, {k}), real_options(a)) : empty({0}, real_options(a));
  if (a.numel() > 0 && columns > 0) {
    const int rows = lapack::to_int(kOp, m), cols = lapack::to_int(kOp, n), sides = lapack::to_int(kOp, columns);
    const Columns matrices(work), sides_of(right);
    lapack::require(kOp);
    visit_lapack_types(kOp, a.dtype(), [&]<class T> {
      for_each_matrix(matrices.count, 4 * cubed(k), [&](int64_t i) {
        info.data<int32_t>()[i] = lapack::least_squares(
            driver, rows, cols, sides, matrices.at<T>(i), sides_of.at<T>(i), static_cast<lapack::Real<T>>(rcond),
            values ? out.singular_values.data<lapack::Real<T>>() + i * k : nullptr, rank.data<int32_t>() + i);
      });
    });
    check_info(kOp, info, [](int32_t code) {
      return str_cat(
          {"The least squares solution could not be computed because the input matrix does not have full "
           "rank (error code: ",
           code, ")."});
    });
  }
  out.solution = narrow(right, -2, 0, n);
  out.rank = driver == lapack::LeastSquares::Gels ? empty({0}, TensorOptions(kInt64)) : to(rank, kInt64);
  return out;
}

}  // namespace

LstsqResult lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond, std::string_view driver_name) {
  constexpr const char* kOp = "linalg.lstsq";
  check_matrices(kOp, a, "input");
  check_strided(kOp, b, "other");
  check_on_cpu(kOp, b);
  TERCEL_CHECK(b.dim() >= 1, RuntimeError, kOp, ": other must have at least 1 dimension.");
  TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, kOp,
               ": Expected input and other to have the same dtype, but got input's dtype ", scalar_type_word(a.dtype()),
               " and other's dtype ", scalar_type_word(b.dtype()));
  const auto driver = parse_driver(driver_name);
  const bool vector = is_vector_case(a, b);
  Tensor matrices = a, right = vector ? unsqueeze(b, -1) : b;
  TERCEL_CHECK(
      right.dim() >= 2 && a.size(-2) == right.size(-2), RuntimeError, kOp,
      vector ? ": input.size(-2) should match other.size(-1)" : ": input.size(-2) should match other.size(-2)");
  const DimVector batch = broadcast_sizes(batch_sizes(a), batch_sizes(right));
  for (Tensor* x : {&matrices, &right}) {
    DimVector sizes(batch);
    sizes.push_back(x->size(-2));
    sizes.push_back(x->size(-1));
    *x = expand(*x, sizes);
  }
  const int64_t m = a.size(-2), n = a.size(-1);
  const double cutoff = rcond.value_or(default_rtol(a));
  LstsqResult out = plain_lstsq(matrices, right, cutoff, driver);
  if (should_record(matrices, right))
    record("LinalgLstsqBackward0", out.solution, {matrices, right},
           [a = SavedTensor(matrices), b = SavedTensor(right)](BackwardCall& call) {
             const Tensor p = pinv(a.get());
             if (call.needs(0)) call.set(0, pinv_gradient(matmul(call.grad(), adjoint(b.get())), p, a.get()));
             if (call.needs(1)) call.set(1, matmul(adjoint(p), call.grad()));
           });
  const bool full_rank = driver == lapack::LeastSquares::Gels || item(all(eq(out.rank, n))).to_bool();
  // PyTorch does not return them for gelsy either.
  const bool residuals = m > n && full_rank && driver != lapack::LeastSquares::Gelsy;
  out.residuals =
      residuals ? sum(square(abs(sub(matmul(matrices, out.solution), right))), {-2}) : empty({0}, real_options(a));
  if (vector) {
    out.solution = squeeze(out.solution, -1);
    if (out.residuals.dim() > 1 || m > n) out.residuals = squeeze(out.residuals, -1);
  }
  return out;
}

}  // namespace tercel::linalg
