// Cholesky, QR, singular values, eigenvalues of symmetric matrices.
#include <algorithm>

#include "tercel/autograd/not_implemented.h"
#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/ternary.h"
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

Tensor eye_like(const Tensor& a, int64_t n) { return eye(n, -1, a.options()); }

CholeskyResult plain_cholesky(const char* op, const Tensor& a) {
  const NoRecordGuard no_record;
  CholeskyResult out;
  out.info = zeros(batch_sizes(a), TensorOptions(kInt32));
  // The lower triangle of a row-major matrix is the upper one of what LAPACK sees, and so is the factor.
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
      // OpenBLAS goes on after a NaN, which it takes for positive.
      for (int k = 0; info[i] == 0 && k < n; ++k)
        if (const T d = factor[k * int64_t{n} + k]; d != d) info[i] = k + 1;
    });
  });
  return out;
}

/** Phi of a matrix: its lower triangle, with half the diagonal. */
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
  // One triangle is read: U of the upper one is L of its transpose.
  CholeskyResult out = lower_cholesky("linalg.cholesky", upper ? adjoint(a) : a);
  if (check_errors) check_info("linalg.cholesky", out.info, not_positive_sentence);
  if (upper) out.L = adjoint(out.L);
  return out;
}

Tensor cholesky(const Tensor& a, bool upper) { return cholesky_ex(a, upper, true).L; }

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

/** The first `columns` columns of the product of the reflectors that a holds, not recorded. */
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

/** x with its lower triangle mirrored above; the diagonal is then real. */
Tensor mirror_lower(const Tensor& x) {
  const Tensor below = tril(x, -1);
  return add(add(below, adjoint(below)), diag_embed(real(diagonal(x, 0, -2, -1))));
}

/** Gradient of a for those of Q and R, either of which may be undefined. */
Tensor qr_gradient(const Tensor& g_q, const Tensor& g_r, const Tensor& q, const Tensor& r) {
  const int64_t k = r.size(-2), n = r.size(-1);
  Tensor gq = g_q, gr = g_r;
  Tensor beside;
  if (n > k) {
    // R = [U V]: a = [Q U, Q V], so that V's part of a passes through Q.
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

QrResult qr(const Tensor& a, std::string_view mode) {
  check_matrices("linalg.qr", a);
  TERCEL_CHECK(mode == "reduced" || mode == "complete" || mode == "r", RuntimeError, "qr received unrecognized mode '",
               mode, "' but expected one of 'reduced' (default), 'r', or 'complete'");
  const int64_t m = a.size(-2), k = std::min(m, a.size(-1));
  const int64_t columns = mode == "complete" ? m : k;
  QrResult out;
  {
    const NoRecordGuard no_record;
    const GeqrfResult factors = plain_geqrf("linalg.qr", a);
    out.R = triu(narrow(factors.a, -2, 0, columns));
    out.Q = mode == "r" ? empty({0}, a.options()) : product_of_reflectors("linalg.qr", factors.a, factors.tau, columns);
  }
  if (!should_record(a)) return out;
  const bool differentiable = mode != "r" && columns == k;
  const Tensor outs[] = {out.Q, out.R};
  record_outputs("LinalgQrBackward0", outs, {a},
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
  constexpr const char* kOp = "torch.linalg.householder_product";
  check_matrices(kOp, a, "input");
  check_defined(kOp, tau, "tau");
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
  // One reflector after the other, from the last: each is differentiable.
  const int64_t m = a.size(-2);
  const Tensor reflectors = add(tril(a, -1), eye(m, a.size(-1), a.options()));
  Tensor q = expand(eye(m, a.size(-1), a.options()), a.sizes());
  for (int64_t i = tau.size(-1); i-- > 0;) {
    const Tensor v = narrow(reflectors, -1, i, 1), factor = unsqueeze(narrow(tau, -1, i, 1), -1);
    q = sub(q, mul(matmul(v, matmul(adjoint(v), q)), factor));
  }
  return q;
}

namespace {

/** Rows of a complex matrix from which on OpenBLAS 0.3.21 reads beyond a buffer (zgemv), and how many are safe. */
constexpr int64_t kMaxComplexRows = 32768;

SvdResult plain_svd(const char* op, const Tensor& a, bool full, bool vectors);

/** Of matrices with very many rows: of the triangles that blocks of rows leave, whose Q the vectors go through. */
SvdResult tall_svd(const char* op, const Tensor& a, bool vectors) {
  const int64_t m = a.size(-2), n = a.size(-1), step = std::max(kMaxComplexRows / 2, 2 * n);
  std::vector<Tensor> bases, triangles;
  for (int64_t at = 0; at < m; at += step) {
    const QrResult f = qr(narrow(a, -2, at, std::min(step, m - at)), vectors ? "reduced" : "r");
    bases.push_back(f.Q);
    triangles.push_back(f.R);
  }
  SvdResult out = plain_svd(op, cat(triangles, -2), false, vectors);
  if (!vectors) return out;
  std::vector<Tensor> parts;
  for (int64_t i = 0, row = 0; i < static_cast<int64_t>(bases.size()); ++i) {
    const Tensor& q = bases[static_cast<size_t>(i)];
    parts.push_back(matmul(q, narrow(out.U, -2, row, q.size(-1))));
    row += q.size(-1);
  }
  out.U = cat(parts, -2);
  return out;
}

SvdResult plain_svd(const char* op, const Tensor& a, bool full, bool vectors) {
  const NoRecordGuard no_record;
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  if (a.is_complex() && std::max(m, n) > kMaxComplexRows && std::max(m, n) > 4 * k && k > 0 && !(full && vectors)) {
    check_finite(op, a, kNotFinite);
    if (m >= n) return tall_svd(op, a, vectors);
    const SvdResult turned = tall_svd(op, adjoint(a), vectors);
    if (!vectors) return turned;
    return {adjoint(turned.Vh), turned.S, adjoint(turned.U)};
  }
  SvdResult out;
  out.S = empty(batch_sizes(a, {k}), real_options(a));
  if (vectors) {
    out.U = empty_columns(batch_sizes(a, {m, full ? m : k}), a.options());
    out.Vh = empty_columns(batch_sizes(a, {full ? n : k, n}), a.options());
  }
  if (a.numel() == 0) {
    if (vectors && full) {
      out.U.copy_(expand(eye_like(a, m), out.U.sizes()));
      out.Vh.copy_(expand(eye_like(a, n), out.Vh.sizes()));
    }
    return out;
  }
  check_finite(op, a, kNotFinite);
  const Tensor work = copy_columns(a), info = zeros(batch_sizes(a), TensorOptions(kInt32));
  const int rows = lapack::to_int(op, m), columns = lapack::to_int(op, n);
  const Columns matrices(work);
  lapack::require(op);
  visit_lapack_types(op, a.dtype(), [&]<class T> {
    for_each_matrix(matrices.count, 10 * cubed(k), [&](int64_t i) {
      info.data<int32_t>()[i] =
          lapack::gesdd(full, rows, columns, matrices.at<T>(i), out.S.data<lapack::Real<T>>() + i * k,
                        vectors ? Columns(out.U).at<T>(i) : nullptr, vectors ? Columns(out.Vh).at<T>(i) : nullptr);
    });
  });
  check_info(op, info, [](int32_t code) {
    return str_cat(
        {"The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
         "repeated singular values (error code: ",
         code, ")."});
  });
  return out;
}

/** x - x^H */
Tensor skew(const Tensor& x) { return sub(x, adjoint(x)); }

/** Gradient of a for those of U [m, k], S, Vh [k, n], any of which may be undefined. */
Tensor svd_gradient(const Tensor& gu, const Tensor& gs, const Tensor& gvh, const Tensor& u, const Tensor& s,
                    const Tensor& vh) {
  const int64_t m = u.size(-2), n = vh.size(-1), k = s.size(-1);
  if (!gu.defined() && !gvh.defined()) return matmul(mul(u, unsqueeze(gs, -2)), vh);
  const Tensor e = differences(square(s));
  Tensor inner;
  const auto include = [](Tensor& sum, Tensor term) { sum = sum.defined() ? add(sum, term) : std::move(term); };
  if (gs.defined()) include(inner, diag_embed(gs));
  Tensor phases;
  if (gu.defined()) {
    const Tensor turn = skew(matmul(adjoint(u), gu));
    include(inner, mul(div(turn, e), unsqueeze(s, -2)));
    phases = diagonal(turn, 0, -2, -1);
    // A phase of u and the opposite one of v cancel: what is left of it is u's own.
    if (turn.is_complex() && gvh.defined()) include(inner, diag_embed(div(phases, mul(s, 2))));
  }
  if (gvh.defined()) {
    const Tensor turn = skew(matmul(vh, adjoint(gvh)));
    include(inner, mul(div(turn, e), unsqueeze(s, -1)));
    include(phases, diagonal(turn, 0, -2, -1));
  }
  check_phase("svd_backward", "singular vectors", phases, "phase term, making it ill-defined.");
  Tensor ga = matmul(matmul(u, inner), vh);
  if (gu.defined() && m > k) {
    const Tensor scaled = div(gu, unsqueeze(s, -2));
    include(ga, matmul(sub(scaled, matmul(u, matmul(adjoint(u), scaled))), vh));
  }
  if (gvh.defined() && n > k) {
    const Tensor scaled = div(gvh, unsqueeze(s, -1));
    include(ga, matmul(u, sub(scaled, matmul(matmul(scaled, adjoint(vh)), vh))));
  }
  return ga;
}

}  // namespace

SvdResult svd(const Tensor& a, bool full_matrices) {
  check_matrices("linalg.svd", a);
  SvdResult out = plain_svd("linalg.svd", a, full_matrices, true);
  if (!should_record(a)) return out;
  const int64_t k = out.S.size(-1);
  const Tensor outs[] = {out.U, out.S, out.Vh};
  record_outputs("LinalgSvdBackward0", outs, {a},
                 [u = SavedTensor::output(out.U), s = SavedTensor::output(out.S, 1),
                  vh = SavedTensor::output(out.Vh, 2), k](BackwardCall& call) {
                   // Vectors beyond the first k are any basis of what is left: no gradient passes through them.
                   const auto columns = [k](const Tensor& x) { return x.defined() ? narrow(x, -1, 0, k) : x; };
                   const auto rows = [k](const Tensor& x) { return x.defined() ? narrow(x, -2, 0, k) : x; };
                   call.set(0, svd_gradient(columns(call.grad(0)), call.grad(1), rows(call.grad(2)),
                                            columns(u.get(call)), s.get(call), rows(vh.get(call))));
                 });
  return out;
}

Tensor svdvals(const Tensor& a) {
  check_matrices("linalg.svd", a);
  if (should_record(a)) return linalg::svd(a, false).S;
  return plain_svd("linalg.svd", a, false, false).S;
}

namespace {

EighResult plain_eigh(const Tensor& a, char uplo, bool vectors) {
  const NoRecordGuard no_record;
  constexpr const char* kOp = "linalg.eigh";
  TERCEL_CHECK(uplo == 'L' || uplo == 'U' || uplo == 'l' || uplo == 'u', RuntimeError,
               "Expected UPLO argument to be 'L' or 'U', but got ", uplo);
  EighResult out{empty(batch_sizes(a, {a.size(-1)}), real_options(a)), copy_columns(a)};
  if (a.numel() == 0) return out;
  const int n = lapack::to_int(kOp, a.size(-1));
  const bool upper = uplo == 'U' || uplo == 'u';
  const Tensor info = zeros(batch_sizes(a), TensorOptions(kInt32));
  const Columns matrices(out.eigenvectors);
  lapack::require(kOp);
  visit_lapack_types(kOp, a.dtype(), [&]<class T> {
    for_each_matrix(matrices.count, 5 * cubed(n), [&](int64_t i) {
      info.data<int32_t>()[i] =
          lapack::syevd(vectors, upper, n, matrices.at<T>(i), out.eigenvalues.data<lapack::Real<T>>() + i * n);
    });
  });
  check_info(kOp, info, [](int32_t code) {
    return str_cat(
        {"The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
         "repeated eigenvalues (error code: ",
         code, ")."});
  });
  return out;
}

}  // namespace

EighResult eigh(const Tensor& a, char uplo) {
  check_square("linalg.eigh", a);
  EighResult out = plain_eigh(a, uplo, true);
  if (!should_record(a)) return out;
  const Tensor outs[] = {out.eigenvalues, out.eigenvectors};
  record_outputs(
      "LinalgEighBackward0", outs, {a},
      [w = SavedTensor::output(out.eigenvalues), v = SavedTensor::output(out.eigenvectors, 1)](BackwardCall& call) {
        const Tensor vectors = v.get(call);
        if (!call.grad(1).defined())
          return call.set(0, matmul(mul(vectors, unsqueeze(call.grad(0), -2)), adjoint(vectors)));
        // The diagonal of V^H gV is the part along V itself, whose length is fixed.
        const Tensor inside = matmul(adjoint(vectors), call.grad(1));
        check_phase("linalg_eigh_backward", "eigenvectors", diagonal(inside, 0, -2, -1));
        Tensor inner = div(sub(inside, diag_embed(diagonal(inside, 0, -2, -1))), differences(w.get(call)));
        if (call.grad(0).defined()) inner = add(inner, diag_embed(call.grad(0)));
        call.set(0, matmul(matmul(vectors, inner), adjoint(vectors)));
      });
  return out;
}

Tensor eigvalsh(const Tensor& a, char uplo) {
  check_square("linalg.eigvalsh", a);
  return should_record(a) ? eigh(a, uplo).eigenvalues : plain_eigh(a, uplo, false).eigenvalues;
}

}  // namespace linalg

GeqrfResult geqrf(const Tensor& a) {
  linalg::check_matrices("torch.geqrf", a, "input");
  GeqrfResult out = linalg::plain_geqrf("torch.geqrf", a);
  record_not_implemented("GeqrfBackward0", {out.a, out.tau}, {a}, "geqrf");
  return out;
}

Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper) {
  linalg::check_square("cholesky_solve", factor, "A");
  check_defined("cholesky_solve", b, "self");
  TERCEL_CHECK(b.dim() >= 2, RuntimeError, "b should have at least 2 dimensions, but has ", b.dim(),
               " dimensions instead");
  check_same_dtype("cholesky_solve", b, factor);
  TERCEL_CHECK(b.size(-2) == factor.size(-2), RuntimeError,
               "Incompatible matrix sizes for cholesky_solve: each A matrix is ", factor.size(-1), " by ",
               factor.size(-1), " but each b matrix is ", b.size(-2), " by ", b.size(-1));
  const Tensor l = upper ? adjoint(factor) : factor;
  return linalg::solve_triangular(adjoint(l), linalg::solve_triangular(l, b, false), true);
}

Tensor cholesky_inverse(const Tensor& factor, bool upper) {
  linalg::check_square("cholesky_inverse", factor, "A");
  if (factor.numel() > 0) {
    const NoRecordGuard no_record;
    const Tensor zeros = contiguous(eq(diagonal(factor, 0, -2, -1), 0));
    const int64_t n = factor.size(-1);
    const auto* found = static_cast<const bool*>(zeros.data_ptr());
    for (int64_t i = 0; i < zeros.numel(); ++i)
      if (found[i])
        linalg::refuse_matrix(
            "cholesky_inverse", select(zeros, -1, 0), i / n,
            str_cat({"The diagonal element ", i % n + 1, " is zero, the inversion could not be completed."}));
  }
  return cholesky_solve(eye(factor.size(-1), -1, factor.options()), factor, upper);
}

namespace {

void check_ormqr(const Tensor& a, const Tensor& tau, const Tensor& other, bool left) {
  constexpr const char* kOp = "torch.ormqr";
  check_defined(kOp, a, "input");
  check_defined(kOp, tau, "tau");
  check_defined(kOp, other, "other");
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
  // other Q is the adjoint of Q^H other^H. One reflector after the other: each is differentiable.
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

OlderSvdResult svd(const Tensor& a, bool some, bool compute_uv) {
  if (compute_uv) {
    const linalg::SvdResult r = linalg::svd(a, !some);
    return {r.U, r.S, adjoint(r.Vh)};
  }
  const Tensor s = linalg::svdvals(a);
  DimVector u(a.sizes()), v(a.sizes());
  u[u.size() - 1] = u[u.size() - 2];
  v[v.size() - 2] = v[v.size() - 1];
  const TensorOptions options(a.dtype(), a.device());
  return {zeros(u, options), s, zeros(v, options)};
}

}  // namespace tercel
