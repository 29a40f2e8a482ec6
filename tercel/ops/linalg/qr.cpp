// QR factorization, and products with Householder reflectors.
#include <algorithm>

#include "tercel/autograd/not_implemented.h"
#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/lapack_impl.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/diagonals.h"

namespace tercel {

namespace linalg {

namespace {

/** Reflectors and R of a, column-major, and tau. */
GeqrfResult plain_geqrf(const char* op, const Tensor& a) {
  const NoRecordGuard no_record;
  const int64_t k = std::min(a.size(-1), a.size(-2));
  GeqrfResult out{copy_columns(a), empty(batch_sizes(a, {k}), a.options())};
  if (a.numel() == 0) return out;
  const int m = lapack::to_int(op, a.size(-2)), n = lapack::to_int(op, a.size(-1));
  const Columns matrices(out.a);
  lapack::require(op);
  visit_lapack_types(op, a.dtype(), [&]<class T> {
    T* tau = out.tau.data<T>();
    for_each_matrix(matrices.count, cubed(k), [&](int64_t i) { lapack::geqrf(m, n, matrices.at<T>(i), tau + i * k); });
  });
  return out;
}

/** The first `columns` columns of the product of the reflectors stored in a; not recorded. */
Tensor product_of_reflectors(const char* op, const Tensor& a, const Tensor& tau, int64_t columns) {
  const NoRecordGuard no_record;
  const int64_t rows = a.size(-2), k = tau.size(-1);
  Tensor q = empty_columns(batch_sizes(a, {rows, columns}), a.options());
  if (k == 0 || q.numel() == 0) return copy_(q, expand(eye(rows, columns, a.options()), q.sizes()));
  const int64_t shared = std::min(columns, a.size(-1));
  if (columns > shared) zero_(q);
  narrow(q, -1, 0, shared).copy_(narrow(a, -1, 0, shared));
  const Tensor factors = contiguous(tau);
  const int m = lapack::to_int(op, rows), n = lapack::to_int(op, columns), reflectors = lapack::to_int(op, k);
  const Columns matrices(q);
  lapack::require(op);
  visit_lapack_types(op, a.dtype(), [&]<class T> {
    const T* first = factors.data<T>();
    for_each_matrix(matrices.count, cubed(columns),
                    [&](int64_t i) { lapack::orgqr(m, n, reflectors, matrices.at<T>(i), first + i * k); });
  });
  return q;
}

/** The lower triangle of x mirrored to the upper one; the diagonal becomes real. */
Tensor mirror_lower(const Tensor& x) {
  const Tensor below = tril(x, -1);
  return add(add(below, adjoint(below)), diag_embed(real(diagonal(x, 0, -2, -1))));
}

/** Gradient of a from those of Q and R, either of which may be undefined. */
Tensor qr_gradient(const Tensor& g_q, const Tensor& g_r, const Tensor& q, const Tensor& r) {
  const int64_t k = r.size(-2), n = r.size(-1);
  Tensor gq = g_q, gr = g_r;
  Tensor beside;
  if (n > k) {
    // R = [U V]: a = [Q U, Q V], so the gradient of V reaches a directly and through Q.
    const Tensor v = narrow(r, -1, k, n - k);
    if (gr.defined()) {
      const Tensor gv = narrow(gr, -1, k, n - k);
      beside = matmul(q, gv);
      const Tensor through_q = matmul(matmul(q, v), adjoint(gv));
      gq = gq.defined() ? add(gq, through_q) : through_q;
      gr = narrow(gr, -1, 0, k);
    } else {
      beside = zeros(batch_sizes(q, {q.size(-2), n - k}), q.options());
    }
  }
  const Tensor u = narrow(r, -1, 0, k);
  Tensor inner;
  if (gr.defined()) inner = matmul(u, adjoint(gr));
  if (gq.defined()) inner = inner.defined() ? sub(inner, matmul(adjoint(gq), q)) : neg(matmul(adjoint(gq), q));
  Tensor ga = matmul(q, mirror_lower(inner));
  if (gq.defined()) ga = add(ga, gq);
  ga = solve_triangular(adjoint(u), ga, /*upper=*/false, /*left=*/false);
  if (!beside.defined()) return ga;
  const Tensor parts[] = {ga, beside};
  return cat(parts, -1);
}

}  // namespace

QrResult qr(const Tensor& A, std::string_view mode) {
  check_matrices("linalg.qr", A);
  TERCEL_CHECK(mode == "reduced" || mode == "complete" || mode == "r", RuntimeError, "qr received unrecognized mode '",
               mode, "' but expected one of 'reduced' (default), 'r', or 'complete'");
  const int64_t m = A.size(-2), k = std::min(m, A.size(-1));
  const int64_t columns = mode == "complete" ? m : k;
  QrResult out;
  {
    const NoRecordGuard no_record;
    const GeqrfResult factors = plain_geqrf("linalg.qr", A);
    out.R = triu(narrow(factors.a, -2, 0, columns));
    out.Q = mode == "r" ? empty({0}, A.options()) : product_of_reflectors("linalg.qr", factors.a, factors.tau, columns);
  }
  if (!should_record(A)) return out;
  const bool differentiable = mode != "r" && columns == k;
  const Tensor outs[] = {out.Q, out.R};
  record_outputs("LinalgQrBackward0", outs, {A},
                 [q = SavedTensor::output(out.Q), r = SavedTensor::output(out.R, 1), differentiable,
                  is_r = mode == "r"](BackwardCall& call) {
                   TERCEL_CHECK(!is_r, RuntimeError,
                                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
                                "use linalg.qr(A, mode='reduced') if you are going to require gradients.");
                   TERCEL_CHECK(differentiable, RuntimeError,
                                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
                   call.set(0, qr_gradient(call.grad(0), call.grad(1), q.get(call), r.get(call)));
                 });
  return out;
}

Tensor householder_product(const Tensor& a, const Tensor& tau) {
  constexpr const char* kOp = "linalg.householder_product";
  check_matrices(kOp, a, "input");
  check_strided(kOp, tau, "tau");
  TERCEL_CHECK(a.size(-2) >= a.size(-1), RuntimeError, kOp,
               ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  TERCEL_CHECK(tau.dim() == a.dim() - 1, RuntimeError, kOp,
               ": Expected tau to have one dimension less than input, but got tau.ndim equal to ", tau.dim(),
               " and input.ndim is equal to ", a.dim());
  TERCEL_CHECK(a.size(-1) >= tau.size(-1), RuntimeError, kOp,
               ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  TERCEL_CHECK(batch_sizes(a) == DimVector(tau.sizes().subspan(0, tau.sizes().size() - 1)), RuntimeError, kOp,
               ": Expected batch dimensions of tau to be equal to input.shape[:-2], but got ", tau.sizes());
  TERCEL_CHECK(tau.dtype() == a.dtype(), RuntimeError, kOp, ": tau dtype ", scalar_type_word(tau.dtype()),
               " does not match input dtype ", scalar_type_word(a.dtype()));
  if (!should_record(a, tau)) return product_of_reflectors(kOp, a, tau, a.size(-1));
  // Reflectors are applied one by one, from the last: each step is differentiable.
  const int64_t m = a.size(-2);
  const Tensor reflectors = add(tril(a, -1), eye(m, a.size(-1), a.options()));
  Tensor q = expand(eye(m, a.size(-1), a.options()), a.sizes());
  for (int64_t i = tau.size(-1); i-- > 0;) {
    const Tensor v = narrow(reflectors, -1, i, 1), factor = unsqueeze(narrow(tau, -1, i, 1), -1);
    q = sub(q, mul(matmul(v, matmul(adjoint(v), q)), factor));
  }
  return q;
}

}  // namespace linalg

GeqrfResult geqrf(const Tensor& a) {
  linalg::check_matrices("geqrf", a, "input");
  GeqrfResult out = linalg::plain_geqrf("geqrf", a);
  record_not_implemented("GeqrfBackward0", {out.a, out.tau}, {a}, "geqrf");
  return out;
}

namespace {

void check_ormqr(const Tensor& a, const Tensor& tau, const Tensor& other, bool left) {
  constexpr const char* kOp = "ormqr";
  check_strided(kOp, a, "input");
  check_strided(kOp, tau, "tau");
  check_strided(kOp, other, "other");
  TERCEL_CHECK(a.dim() >= 2, RuntimeError, kOp, ": input must have at least 2 dimensions.");
  TERCEL_CHECK(other.dim() >= 2, RuntimeError, kOp, ": other must have at least 2 dimensions.");
  TERCEL_CHECK(tau.dim() == a.dim() - 1, RuntimeError, kOp,
               ": Expected tau to have one dimension less than input, but got tau.ndim equal to ", tau.dim(),
               " and input.ndim is equal to ", a.dim());
  TERCEL_CHECK(a.dim() == other.dim(), RuntimeError, kOp,
               ": Expected other to have the same number of dimensions as input, but got other.ndim equal to ",
               other.dim(), " and input.ndim is equal to ", a.dim());
  const int64_t side = left ? -2 : -1, size = other.size(side);
  TERCEL_CHECK(size >= tau.size(-1), RuntimeError, kOp, ": other.shape[", side,
               "] must be greater than or equal to tau.shape[-1]");
  TERCEL_CHECK(std::min(size, a.size(-1)) == tau.size(-1), RuntimeError, kOp,
               ": tau.shape[-1] must be equal to min(other.shape[", side, "], input.shape[-1])");
  TERCEL_CHECK(size == a.size(-2), RuntimeError, kOp, ": other.shape[", side, "] must be equal to input.shape[-2]");
  const auto batch = static_cast<size_t>(a.dim() - 2);
  for (const auto& [name, t] : {std::pair<const char*, const Tensor&>{"tau", tau}, {"other", other}}) {
    const IntSpan sizes = t.sizes().subspan(0, batch);
    TERCEL_CHECK(sizes == a.sizes().subspan(0, batch), RuntimeError, kOp, ": Expected batch dimensions of ", name,
                 " to be equal to input.shape[:-2], but got ", sizes);
    TERCEL_CHECK(t.dtype() == a.dtype(), RuntimeError, kOp, ": Expected input and ", name,
                 " to have the same dtype, but input has dtype", scalar_type_word(a.dtype()), " and ", name,
                 " has dtype ", scalar_type_word(t.dtype()));
  }
}

}  // namespace

Tensor ormqr(const Tensor& a, const Tensor& tau, const Tensor& other, bool left, bool transpose) {
  check_ormqr(a, tau, other, left);
  // other Q is the adjoint of Q^H other^H. Reflectors are applied one by one: each step is differentiable.
  Tensor x = left ? other : adjoint(other);
  const bool adjoint_of_q = left ? transpose : !transpose;
  const Tensor reflectors = add(tril(a, -1), eye(a.size(-2), a.size(-1), TensorOptions(a.dtype(), a.device())));
  const int64_t count = tau.size(-1);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t i = adjoint_of_q ? k : count - 1 - k;
    const Tensor v = narrow(reflectors, -1, i, 1), factor = unsqueeze(narrow(tau, -1, i, 1), -1);
    x = sub(x, mul(matmul(v, matmul(adjoint(v), x)), adjoint_of_q ? conj(factor) : factor));
  }
  return left ? x : adjoint(x);
}

}  // namespace tercel
