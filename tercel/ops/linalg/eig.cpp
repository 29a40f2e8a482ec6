// Eigenvalues of symmetric and of general square matrices.
#include "tercel/autograd/record.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/lapack_impl.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/diagonals.h"

namespace tercel::linalg {

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
        // The diagonal of V^H gV is the component along V itself, which has no effect, since V's norm is fixed.
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

namespace {

EigResult plain_eig(const char* op, const Tensor& a, bool vectors) {
  const NoRecordGuard no_record;
  const int64_t n = a.size(-1);
  const TensorOptions options(complex_dtype(a.dtype()), a.device());
  EigResult out{empty(batch_sizes(a, {n}), options), {}};
  if (vectors) out.eigenvectors = empty_columns(a.sizes(), options);
  if (a.numel() == 0) return out;
  TERCEL_CHECK(all(isfinite(a)).item<bool>(), LinAlgError, op, ": input tensor should not contain infs or NaNs.");
  const Tensor work = copy_columns(a), info = zeros(batch_sizes(a), TensorOptions(kInt32));
  const int size = lapack::to_int(op, n);
  const Columns matrices(work);
  lapack::require(op);
  visit_lapack_types(op, a.dtype(), [&]<class T> {
    using C = Complex<lapack::Real<T>>;
    for_each_matrix(matrices.count, 25 * cubed(n), [&](int64_t i) {
      C* columns = vectors ? Columns(out.eigenvectors).at<C>(i) : nullptr;
      info.data<int32_t>()[i] = lapack::geev(size, matrices.at<T>(i), out.eigenvalues.data<C>() + i * n, columns);
    });
  });
  check_info(op, info, [](int32_t code) {
    return str_cat(
        {"The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
         "eigenvalues (error code: ",
         code, ")."});
  });
  return out;
}

/** Gradient of a from those of the eigenvalues w and the eigenvectors v, either of which may be undefined. */
Tensor eig_gradient(const Tensor& gw, const Tensor& gv, const Tensor& w, const Tensor& v) {
  const Tensor vh = adjoint(v);
  if (!gv.defined()) return solve(vh, mul(unsqueeze(gw, -1), vh));
  Tensor inside = matmul(vh, gv);
  const Tensor along = diagonal(inside, 0, -2, -1);
  check_phase("linalg_eig_backward", "eigenvectors", along);
  // The norm of a vector is fixed.
  inside = sub(inside, matmul(vh, mul(v, unsqueeze(real(along), -2))));
  Tensor inner = div(inside, conj(differences(w)));
  inner = sub(inner, diag_embed(diagonal(inner, 0, -2, -1)));
  if (gw.defined()) inner = add(inner, diag_embed(gw));
  return solve(vh, matmul(inner, vh));
}

}  // namespace

EigResult eig(const Tensor& a) {
  check_square("linalg.eig", a);
  EigResult out = plain_eig("linalg.eig", a, true);
  if (!should_record(a)) return out;
  const Tensor outs[] = {out.eigenvalues, out.eigenvectors};
  record_outputs("LinalgEigBackward0", outs, {a},
                 [w = SavedTensor::output(out.eigenvalues), v = SavedTensor::output(out.eigenvectors, 1),
                  is_complex = a.is_complex()](BackwardCall& call) {
                   const Tensor g = eig_gradient(call.grad(0), call.grad(1), w.get(call), v.get(call));
                   call.set(0, is_complex ? g : real(g));
                 });
  return out;
}

Tensor eigvals(const Tensor& a) {
  check_square("linalg.eigvals", a);
  return should_record(a) ? eig(a).eigenvalues : plain_eig("linalg.eigvals", a, false).eigenvalues;
}

}  // namespace tercel::linalg
