// LU factorization, and solving with its factors.
#include <algorithm>
#include <vector>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/linalg/lapack_impl.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/diagonals.h"

namespace tercel {

namespace linalg {

namespace {

constexpr const char *kLuSolve = "lu_solve", *kLuUnpack = "lu_unpack";

/** In-place LU factorization without row exchanges, column by column. */
template <class T>
int factor_unpivoted(int64_t m, int64_t n, T* a, int* pivots) {
  int info = 0;
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    pivots[k] = static_cast<int>(k + 1);
    const T pivot = a[k + k * m];
    if (pivot == T(0)) {
      if (info == 0) info = static_cast<int>(k + 1);
      continue;
    }
    for (int64_t i = k + 1; i < m; ++i) a[i + k * m] = a[i + k * m] / pivot;
    for (int64_t j = k + 1; j < n; ++j)
      for (int64_t i = k + 1; i < m; ++i) a[i + j * m] = a[i + j * m] - a[i + k * m] * a[k + j * m];
  }
  return info;
}

}  // namespace

LuFactorExResult plain_lu(const char* op, const Tensor& a, bool pivot) {
  const NoRecordGuard no_record;
  LuFactorExResult out;
  const int64_t k = std::min(a.size(-1), a.size(-2));
  out.LU = copy_columns(a);
  out.pivots = empty(batch_sizes(a, {k}), TensorOptions(kInt32));
  out.info = zeros(batch_sizes(a), TensorOptions(kInt32));
  if (a.numel() == 0) return out;
  const int m = lapack::to_int(op, a.size(-2)), n = lapack::to_int(op, a.size(-1));
  const Columns matrices(out.LU);
  auto* pivots = out.pivots.data<int32_t>();
  auto* info = out.info.data<int32_t>();
  if (pivot) lapack::require(op);
  visit_lapack_types(op, a.dtype(), [&]<class T> {
    for_each_matrix(matrices.count, cubed(k), [&](int64_t i) {
      info[i] = pivot ? lapack::getrf(m, n, matrices.at<T>(i), pivots + i * k)
                      : factor_unpivoted(m, n, matrices.at<T>(i), pivots + i * k);
    });
  });
  return out;
}

namespace {

/** RuntimeError for a pivot that is not a row of LU. */
void refuse_pivot(const char* op, int64_t row) {
  constexpr const char* kAdvice = "Did you properly pass the result of lu_factor?";
  TERCEL_CHECK(op != kLuSolve || row < 0, RuntimeError,
               "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). ", kAdvice);
  TERCEL_CHECK(op != kLuSolve, RuntimeError, "Pivots given to lu_solve must all be greater or equal to 1. ", kAdvice);
  throw_error<RuntimeError>({"pivots passed to ", op, " must be between 1 and LU.size(-2) inclusive. ", kAdvice});
}

/** P as row indices: row i of P L U is row order[i] of L U (or the reverse); int64 [..., m]. */
Tensor row_order(const char* op, const Tensor& pivots, int64_t m, bool reverse) {
  const NoRecordGuard no_record;
  const Tensor source = contiguous(pivots);
  const int64_t k = source.size(-1), count = k == 0 ? numel_of(batch_sizes(source, {}, 1)) : source.numel() / k;
  Tensor order = empty(batch_sizes(source, {m}, 1), TensorOptions(kInt64));
  auto* out = order.data<int64_t>();
  const auto* swaps = static_cast<const int32_t*>(source.data_ptr());
  std::vector<int64_t> rows(static_cast<size_t>(m));
  for (int64_t b = 0; b < count; ++b) {
    for (int64_t i = 0; i < m; ++i) rows[static_cast<size_t>(i)] = i;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t other = swaps[b * k + i] - 1;
      if (other < 0 || other >= m) refuse_pivot(op, other);
      std::swap(rows[static_cast<size_t>(i)], rows[static_cast<size_t>(other)]);
    }
    // rows[i] is the row of A that is now row i.
    for (int64_t i = 0; i < m; ++i) {
      const int64_t from = rows[static_cast<size_t>(i)];
      out[b * m + (reverse ? from : i)] = reverse ? i : from;
    }
  }
  return order;
}

/** x [..., m, k] with its rows permuted: row i is row order[i] of x. */
Tensor take_rows(const Tensor& x, const Tensor& order) {
  DimVector sizes(x.sizes());
  return gather(x, -2, expand(unsqueeze(order, -1), sizes));
}

/** Gradient of A = P L U from those of the factors, either of which may be undefined. P is given by pivots. */
Tensor lu_gradient(const Tensor& g_l, const Tensor& g_u, const Tensor& lower, const Tensor& upper,
                   const Tensor& pivots) {
  const int64_t m = lower.size(-2), n = upper.size(-1), k = lower.size(-1);
  const auto l = [&](const Tensor& x) { return narrow(x, -2, 0, k); };  // the square part
  const auto u = [&](const Tensor& x) { return narrow(x, -1, 0, k); };
  Tensor gl = g_l.defined() ? tril(g_l, -1) : zeros_like(lower), gu = g_u.defined() ? triu(g_u) : zeros_like(upper);
  const Tensor l_square = l(lower), u_square = u(upper);
  Tensor beside, below;
  if (n > k) {  // U = [U1 U2], U2 = L^-1 A2
    const Tensor gu2 = narrow(gu, -1, k, n - k), u2 = narrow(upper, -1, k, n - k);
    beside = solve_triangular(adjoint(l_square), gu2, /*upper=*/true, true, /*unitriangular=*/true);
    gl = sub(gl, tril(matmul(beside, adjoint(u2)), -1));
  }
  if (m > k) {  // L = [L1; L2], L2 = A2 U^-1
    const Tensor gl2 = narrow(gl, -2, k, m - k), l2 = narrow(lower, -2, k, m - k);
    below = solve_triangular(adjoint(u_square), gl2, /*upper=*/false, /*left=*/false);
    gu = sub(gu, triu(matmul(adjoint(l2), below)));
  }
  const Tensor inner = add(tril(matmul(adjoint(l_square), l(gl)), -1), triu(matmul(u(gu), adjoint(u_square))));
  const Tensor right = solve_triangular(adjoint(u_square), inner, /*upper=*/false, /*left=*/false);
  Tensor ga = solve_triangular(adjoint(l_square), right, /*upper=*/true, true, /*unitriangular=*/true);
  if (beside.defined()) {
    const Tensor parts[] = {ga, beside};
    ga = cat(parts, -1);
  }
  if (below.defined()) {
    const Tensor parts[] = {ga, below};
    ga = cat(parts, -2);
  }
  return take_rows(ga, row_order(kLuUnpack, pivots, m, /*reverse=*/true));
}

Tensor lower_of(const Tensor& lu) {
  const int64_t m = lu.size(-2), k = std::min(m, lu.size(-1));
  return add(tril(narrow(lu, -1, 0, k), -1), eye(m, k, lu.options()));
}
Tensor upper_of(const Tensor& lu) { return triu(narrow(lu, -2, 0, std::min(lu.size(-2), lu.size(-1)))); }

/** plain_lu(), recorded. */
LuFactorExResult factor(const char* op, const Tensor& a, bool pivot) {
  LuFactorExResult out = plain_lu(op, a, pivot);
  if (should_record(a))
    record("LinalgLuFactorExBackward0", out.LU, {a},
           [lu = SavedTensor::output(out.LU), pivots = SavedTensor(out.pivots)](BackwardCall& call) {
             const Tensor factors = lu.get(call);
             const int64_t k = std::min(factors.size(-1), factors.size(-2));
             call.set(0, lu_gradient(narrow(call.grad(), -1, 0, k), narrow(call.grad(), -2, 0, k), lower_of(factors),
                                     upper_of(factors), pivots.get()));
           });
  return out;
}

std::string zero_pivot_sentence(int32_t k) {
  constexpr const char* kAdvice =
      "] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
      "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)";
  return str_cat({"U[", k, ",", k, kAdvice});
}

}  // namespace

LuFactorExResult lu_factor_ex(const Tensor& A, bool pivot, bool check_errors) {
  check_matrices("linalg.lu_factor_ex", A);
  LuFactorExResult out = factor("linalg.lu_factor_ex", A, pivot);
  if (check_errors) check_info("linalg.lu_factor_ex", out.info, zero_pivot_sentence);
  return out;
}

LuFactorResult lu_factor(const Tensor& A, bool pivot) {
  check_matrices("linalg.lu_factor", A);
  LuFactorExResult out = factor("linalg.lu_factor", A, pivot);
  check_info("linalg.lu_factor", out.info, zero_pivot_sentence);
  return {std::move(out.LU), std::move(out.pivots)};
}

LuResult lu(const Tensor& A, bool pivot) {
  check_matrices("linalg.lu", A);
  const LuFactorExResult factors = factor("linalg.lu", A, pivot);
  LuUnpackResult parts = lu_unpack(factors.LU, factors.pivots, true, pivot);
  return {std::move(parts.P), std::move(parts.L), std::move(parts.U)};
}

Tensor solve_factored(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool adjoint_of) {
  const int64_t n = lu.size(-1);
  if (!adjoint_of) {
    const Tensor y =
        triangular(lu, take_rows(b, row_order(kLuSolve, pivots, n, false)), /*upper=*/false, /*unit=*/true);
    return triangular(lu, y, /*upper=*/true, false);
  }
  const Tensor factors = adjoint(lu);
  const Tensor y = triangular(factors, b, /*upper=*/false, false);
  return take_rows(triangular(factors, y, /*upper=*/true, true), row_order(kLuSolve, pivots, n, true));
}

Tensor lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint_of) {
  check_square("linalg.lu_solve", LU, "LU");
  check_matrices("linalg.lu_solve", B, "B");
  check_right_side("linalg.lu_solve", LU, B, left);
  check_strided("linalg.lu_solve", pivots, "pivots");
  TERCEL_CHECK(pivots.dtype() == kInt32, RuntimeError,
               "linalg.lu_solve: pivots should be a Tensor of scalar type int32. Got ",
               scalar_type_word(pivots.dtype()));
  TERCEL_CHECK(pivots.sizes() == LU.sizes().subspan(0, LU.sizes().size() - 1), RuntimeError,
               "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix; got ",
               pivots.sizes(), " for ", LU.sizes());
  if (!left) return adjoint(lu_solve(LU, pivots, adjoint(B), true, !adjoint_of));
  Tensor factors = LU, right = B;
  broadcast_batches(factors, right);
  return solve_factored(factors, expand(pivots, batch_sizes(factors, {LU.size(-1)})), right, adjoint_of);
}

}  // namespace linalg

LuUnpackResult lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data, bool unpack_pivots) {
  check_strided("lu_unpack", LU_data, "LU_data");
  TERCEL_CHECK(LU_data.dim() >= 2, RuntimeError,
               "lu_unpack: The input tensor LU_data must have at least 2 dimensions.");
  LuUnpackResult out;
  const int64_t m = LU_data.size(-2), k = std::min(m, LU_data.size(-1));
  if (unpack_pivots) {
    check_strided("lu_unpack", LU_pivots, "LU_pivots");
    TERCEL_CHECK(
        LU_pivots.dtype() == kInt32, RuntimeError,
        "lu_unpack: LU_pivots is expected to be a tensor of dtype int32, as linalg.lu_factor returns it, but got ",
        scalar_type_word(LU_pivots.dtype()));
    const DimVector expected = linalg::batch_sizes(LU_data, {k});
    TERCEL_CHECK(LU_pivots.sizes() == IntSpan(expected), RuntimeError, "lu_unpack: expected LU_pivots of sizes ",
                 IntSpan(expected), " but got ", LU_pivots.sizes());
    const NoRecordGuard no_record;
    const Tensor order = linalg::row_order(linalg::kLuUnpack, LU_pivots, m, true);
    out.P = linalg::take_rows(expand(eye(m, -1, LU_data.options()), linalg::batch_sizes(LU_data, {m, m})), order);
  } else {
    out.P = empty({0}, LU_data.options());
  }
  out.L = unpack_data ? linalg::lower_of(LU_data) : empty({0}, LU_data.options());
  out.U = unpack_data ? linalg::upper_of(LU_data) : empty({0}, LU_data.options());
  return out;
}

}  // namespace tercel
