// Singular value decomposition.
#include <algorithm>
#include <vector>

#include "tercel/autograd/record.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
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

Tensor eye_like(const Tensor& a, int64_t n) { return eye(n, -1, a.options()); }

/** Maximum number of rows of a complex matrix: above it OpenBLAS 0.3.21 reads beyond a buffer (zgemv). */
constexpr int64_t kMaxComplexRows = 32768;

SvdResult plain_svd(const char* op, const Tensor& a, bool full, bool vectors);

/** SVD of matrices with very many rows, from the R factors of blocks of rows; the blocks' Q are then applied to U. */
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

/** Gradient of a from those of U [m, k], S, Vh [k, n], any of which may be undefined. */
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
    // A phase of u and the opposite one of v cancel; this term removes that component.
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
                   // Vectors beyond the first k are an arbitrary basis of the complement: they have no gradient.
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

}  // namespace linalg

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
