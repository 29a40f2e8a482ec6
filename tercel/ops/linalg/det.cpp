// Determinants.
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/diagonals.h"

namespace tercel {

namespace linalg {

namespace {

/** Signs of the permutations given by the pivots. */
Tensor parity(const Tensor& pivots, ScalarType dtype) {
  const int64_t n = pivots.size(-1);
  const Tensor moved = ne(pivots, arange(1, n + 1, 1, TensorOptions(kInt32)));
  return to(sub(1, mul(remainder(sum(moved, {-1}), 2), 2)), dtype);
}

/** Conjugate derivatives of the determinant with respect to the elements, from the SVD: valid for any rank. */
Tensor cofactors(const Tensor& a) {
  const SvdResult f = linalg::svd(a, false);
  const int64_t n = a.size(-1);
  const Tensor identity = eye(n, -1, a.options());
  // Row i holds the singular values, with the i-th replaced by 1.
  const Tensor others = add(mul(unsqueeze(f.S, -2), sub(1, identity)), identity);
  const Tensor sign = conj(mul(det(f.U), det(f.Vh)));
  return mul(matmul(mul(f.U, unsqueeze(prod(others, {-1}), -2)), f.Vh), per_matrix(sign));
}

}  // namespace

Tensor det(const Tensor& A) {
  check_square("linalg.det", A);
  Tensor out;
  {
    const NoRecordGuard no_record;
    const LuFactorExResult factors = lu_factor_ex(A);
    out = mul(prod(diagonal(factors.LU, 0, -2, -1), {-1}), parity(factors.pivots, A.dtype()));
  }
  if (should_record(A))
    record("LinalgDetBackward0", out, {A}, [A = SavedTensor(A), out = SavedTensor::output(out)](BackwardCall& call) {
      const Tensor matrices = A.get();
      const Tensor& g = call.grad();
      const bool regular = item(all(ne(out.get(call), 0))).to_bool();
      if (regular)
        call.set(0, mul(adjoint(inv_ex(matrices).inverse), per_matrix(mul(g, conj(out.get(call))))));
      else
        call.set(0, mul(cofactors(matrices), per_matrix(g)));
    });
  return out;
}

SlogdetResult slogdet(const Tensor& A) {
  check_square("linalg.slogdet", A);
  SlogdetResult out;
  {
    const NoRecordGuard no_record;
    const LuFactorExResult factors = lu_factor_ex(A);
    const Tensor d = diagonal(factors.LU, 0, -2, -1);
    out.sign = mul(prod(sgn(d), {-1}), parity(factors.pivots, A.dtype()));
    out.logabsdet = sum(log(abs(d)), {-1});
  }
  if (should_record(A)) {
    const Tensor outs[] = {out.sign, out.logabsdet};
    record_outputs("LinalgSlogdetBackward0", outs, {A},
                   [A = SavedTensor(A), sign = SavedTensor::output(out.sign)](BackwardCall& call) {
                     // Where differentiable, a real sign is constant; a complex one is e^{i phi}.
                     Tensor g = call.grad(1);
                     if (A.get().is_complex() && call.grad(0).defined()) {
                       const Tensor turn = imag(mul(conj(call.grad(0)), sign.get(call)));
                       g = complex(g.defined() ? g : zeros_like(turn), neg(turn));
                     }
                     call.set(0,
                              g.defined() ? mul(adjoint(inv_ex(A.get()).inverse), per_matrix(g)) : zeros_like(A.get()));
                   });
  }
  return out;
}

}  // namespace linalg

Tensor logdet(const Tensor& a) {
  linalg::check_square("logdet", a);
  const linalg::SlogdetResult parts = linalg::slogdet(a);
  if (a.is_complex()) return add(log(parts.sign), parts.logabsdet);
  return where(lt(parts.sign, 0), std::numeric_limits<double>::quiet_NaN(), parts.logabsdet);
}

}  // namespace tercel
