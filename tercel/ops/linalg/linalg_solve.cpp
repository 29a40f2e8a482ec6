// LU factors and what is solved with them; triangular systems, inverses, determinants.
#include <vector>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/linalg/lapack_impl.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/diagonals.h"

namespace tercel {

namespace linalg {

namespace {

constexpr const char *kLuSolve = "lu_solve", *kLuUnpack = "lu_unpack";

/** LU factors in place without exchanging rows, column by column. */
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

/** How a pivot that names no row of LU is refused. */
void refuse_pivot(const char* op, int64_t row) {
  constexpr const char* kAdvice = "Did you properly pass the result of lu_factor?";
  TERCEL_CHECK(op != kLuSolve || row < 0, RuntimeError,
               "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). ", kAdvice);
  TERCEL_CHECK(op != kLuSolve, RuntimeError, "Pivots given to lu_solve must all be greater or equal to 1. ", kAdvice);
  throw_error<RuntimeError>({"pivots passed to ", op, " must be between 1 and LU.size(-2) inclusive. ", kAdvice});
}

/** The rows of P, as numbers: row i of P L U is row order[i] of L U (or the reverse); int64 [..., m]. */
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
    // rows[i] is the row of A that has come to place i.
    for (int64_t i = 0; i < m; ++i) {
      const int64_t from = rows[static_cast<size_t>(i)];
      out[b * m + (reverse ? from : i)] = reverse ? i : from;
    }
  }
  return order;
}

/** Row order[i] of x [..., m, k] in the place of row i. */
Tensor take_rows(const Tensor& x, const Tensor& order) {
  DimVector sizes(x.sizes());
  return gather(x, -2, expand(unsqueeze(order, -1), sizes));
}

/** Gradient of A = P L U for those of the factors, of which either may be undefined. P is given as pivots. */
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

constexpr const char* kSingular = "The solver failed because the input matrix is singular.";

std::string singular_sentence(int32_t) { return kSingular; }
std::string zero_pivot_sentence(int32_t k) {
  constexpr const char* kAdvice =
      "] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
      "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)";
  return str_cat({"U[", k, ",", k, kAdvice});
}
std::string inverse_sentence(int32_t k) {
  return str_cat({"The diagonal element ", k,
                  " is zero, the inversion could not be completed because the input matrix is singular."});
}

Tensor plain_triangular(const Tensor& a, const Tensor& b, bool upper, bool unit) {
  const NoRecordGuard no_record;
  constexpr const char* kOp = "linalg.solve_triangular";
  const Tensor x = copy_columns(b);
  if (x.numel() == 0) return x;
  // Of a row-major matrix LAPACK sees the transpose.
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

/** a^-1 b for a triangle, both of the same batch. */
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

/** Sizes of a's and b's matrices with the batch that both broadcast to. */
void broadcast_batches(Tensor& a, Tensor& b) {
  const DimVector batch = broadcast_sizes(batch_sizes(a), batch_sizes(b));
  for (Tensor* x : {&a, &b}) {
    DimVector sizes(batch);
    sizes.push_back(x->size(-2));
    sizes.push_back(x->size(-1));
    *x = expand(*x, sizes);
  }
}

void check_right_side(const char* op, const Tensor& a, const Tensor& b, bool left) {
  TERCEL_CHECK(a.dtype() == b.dtype(), RuntimeError, op,
               ": Expected A and B to have the same dtype, but found A of type ", scalar_type_word(a.dtype()),
               " and B of type ", scalar_type_word(b.dtype()), " instead");
  TERCEL_CHECK(a.size(left ? -2 : -1) == b.size(left ? -2 : -1), RuntimeError, op,
               ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (", a.size(-2), "x",
               a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
}

}  // namespace

LuFactorExResult lu_factor_ex(const Tensor& a, bool pivot, bool check_errors) {
  check_matrices("torch.linalg.lu_factor_ex", a);
  LuFactorExResult out = factor("torch.linalg.lu_factor_ex", a, pivot);
  if (check_errors) check_info("torch.linalg.lu_factor_ex", out.info, zero_pivot_sentence);
  return out;
}

LuFactorResult lu_factor(const Tensor& a, bool pivot) {
  check_matrices("torch.linalg.lu_factor", a);
  LuFactorExResult out = factor("torch.linalg.lu_factor", a, pivot);
  check_info("torch.linalg.lu_factor", out.info, zero_pivot_sentence);
  return {std::move(out.LU), std::move(out.pivots)};
}

LuResult lu(const Tensor& a, bool pivot) {
  check_matrices("linalg.lu", a);
  const LuFactorExResult factors = factor("linalg.lu", a, pivot);
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

Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint_of) {
  check_square("torch.linalg.lu_solve", lu, "LU");
  check_matrices("torch.linalg.lu_solve", b, "B");
  check_right_side("torch.linalg.lu_solve", lu, b, left);
  check_defined("torch.linalg.lu_solve", pivots, "pivots");
  TERCEL_CHECK(pivots.dtype() == kInt32, RuntimeError,
               "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32. Got ",
               scalar_type_word(pivots.dtype()));
  TERCEL_CHECK(pivots.sizes() == lu.sizes().subspan(0, lu.sizes().size() - 1), RuntimeError,
               "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix; got ",
               pivots.sizes(), " for ", lu.sizes());
  if (!left) return adjoint(lu_solve(lu, pivots, adjoint(b), true, !adjoint_of));
  Tensor factors = lu, right = b;
  broadcast_batches(factors, right);
  return solve_factored(factors, expand(pivots, batch_sizes(factors, {lu.size(-1)})), right, adjoint_of);
}

namespace {

/** X with a X = b of the same batch, its gradient by a's factors; `info` gets a's. */
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
               // A second derivative goes through a, of which the factors know nothing.
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
  check_defined(op, b, "B");
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

Tensor solve(const Tensor& a, const Tensor& b, bool left) {
  Tensor info;
  Tensor out = solve_any("linalg.solve", a, b, left, info);
  check_info("torch.linalg.solve", info, singular_sentence);
  return out;
}

SolveExResult solve_ex(const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  SolveExResult out;
  out.result = solve_any("linalg.solve", a, b, left, out.info);
  if (check_errors) check_info("torch.linalg.solve_ex", out.info, singular_sentence);
  return out;
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unitriangular) {
  check_square("linalg.solve_triangular", a);
  check_matrices("linalg.solve_triangular", b, "B");
  check_right_side("linalg.solve_triangular", a, b, left);
  if (!left) return adjoint(solve_triangular(adjoint(a), adjoint(b), !upper, true, unitriangular));
  Tensor factor = a, right = b;
  broadcast_batches(factor, right);
  return triangular(factor, right, upper, unitriangular);
}

InvExResult inv_ex(const Tensor& a, bool check_errors) {
  check_square("linalg.inv", a);
  InvExResult out;
  {
    const NoRecordGuard no_record;
    const LuFactorExResult factors = plain_lu("linalg.inv", a, true);
    out.info = factors.info;
    const Tensor identity = expand(eye(a.size(-1), -1, a.options()), a.sizes());
    out.inverse = solve_factored(factors.LU, factors.pivots, identity, false);
  }
  if (check_errors) check_info("linalg.inv", out.info, inverse_sentence);
  if (should_record(a))
    record("LinalgInvExBackward0", out.inverse, {a}, [inverse = SavedTensor::output(out.inverse)](BackwardCall& call) {
      const Tensor i = adjoint(inverse.get(call));
      call.set(0, neg(matmul(i, matmul(call.grad(), i))));
    });
  return out;
}

Tensor inv(const Tensor& a) { return inv_ex(a, true).inverse; }

}  // namespace linalg

LuUnpackResult lu_unpack(const Tensor& lu, const Tensor& pivots, bool unpack_data, bool unpack_pivots) {
  check_defined("lu_unpack", lu, "LU_data");
  TERCEL_CHECK(lu.dim() >= 2, RuntimeError, "lu_unpack: The input tensor LU_data must have at least 2 dimensions.");
  LuUnpackResult out;
  const int64_t m = lu.size(-2), k = std::min(m, lu.size(-1));
  if (unpack_pivots) {
    check_defined("lu_unpack", pivots, "LU_pivots");
    TERCEL_CHECK(pivots.dtype() == kInt32, RuntimeError,
                 "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                 "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor");
    const DimVector expected = linalg::batch_sizes(lu, {k});
    TERCEL_CHECK(pivots.sizes() == IntSpan(expected), RuntimeError, "lu_unpack: expected LU_pivots of sizes ",
                 IntSpan(expected), " but got ", pivots.sizes());
    const NoRecordGuard no_record;
    const Tensor order = linalg::row_order(linalg::kLuUnpack, pivots, m, true);
    out.P = linalg::take_rows(expand(eye(m, -1, lu.options()), linalg::batch_sizes(lu, {m, m})), order);
  } else {
    out.P = empty({0}, lu.options());
  }
  out.L = unpack_data ? linalg::lower_of(lu) : empty({0}, lu.options());
  out.U = unpack_data ? linalg::upper_of(lu) : empty({0}, lu.options());
  return out;
}

TriangularSolveResult triangular_solve(const Tensor& b, const Tensor& a, bool upper, bool transposed,
                                       bool unitriangular) {
  check_defined("triangular_solve", a, "A");
  TERCEL_CHECK(b.dim() >= 2, RuntimeError,
               "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has ", b.dim(),
               " dimensions instead");
  TERCEL_CHECK(a.dim() >= 2, RuntimeError,
               "torch.triangular_solve: Expected A to have at least 2 dimensions, but it has ", a.dim(),
               " dimensions instead");
  return {linalg::solve_triangular(transposed ? transpose(a, -2, -1) : a, b, upper != transposed, true, unitriangular),
          clone(a)};
}

}  // namespace tercel
