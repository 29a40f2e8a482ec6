// Pseudo-inverses and ranks.
#include <algorithm>
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/reduce/reduce.h"

namespace tercel::linalg {

double default_rtol(const Tensor& a) {
  const double epsilon = real_dtype(a.dtype()) == kFloat32 ? static_cast<double>(std::numeric_limits<float>::epsilon())
                                                           : std::numeric_limits<double>::epsilon();
  return epsilon * static_cast<double>(std::max(a.size(-1), a.size(-2)));
}

Tensor pinv_gradient(const Tensor& g, const Tensor& p, const Tensor& a) {
  const Tensor ph = adjoint(p), gh = adjoint(g);
  if (a.size(-2) <= a.size(-1)) {
    const Tensor k = matmul(gh, p), k_ph = matmul(k, ph);
    const Tensor through = sub(k_ph, matmul(matmul(a, p), k_ph));
    return add(sub(through, adjoint(matmul(p, k))), matmul(matmul(ph, p), sub(gh, matmul(k, a))));
  }
  const Tensor k = matmul(p, gh), ph_k = matmul(ph, k);
  const Tensor through = sub(ph_k, matmul(matmul(ph_k, p), a));
  return add(sub(through, adjoint(matmul(k, p))), matmul(sub(gh, matmul(a, k)), matmul(p, ph)));
}

namespace {

/** Whether each of the magnitudes [..., k] counts as nonzero. */
Tensor above_tolerance(const Tensor& magnitudes, const Tensor& a, const Tolerance& given_atol,
                       const Tolerance& given_rtol) {
  const Tensor &atol = given_atol.value, &rtol = given_rtol.value;
  Tensor part = rtol;
  if (!part.defined()) part = full({}, default_rtol(a), TensorOptions(kFloat64));
  if (!rtol.defined() && atol.defined()) part = where(gt(atol, 0), 0, part);
  Tensor bound = mul(amax(magnitudes, {-1}, true), unsqueeze(part, -1));
  if (atol.defined()) bound = maximum(bound, unsqueeze(atol, -1));
  return gt(magnitudes, bound);
}

void check_tolerance(const char* op, const Tolerance& tolerance, const char* name) {
  const Tensor& given = tolerance.value;
  TERCEL_CHECK(!given.defined() || !given.is_complex(), RuntimeError, op, ": ", name,
               " tensor of complex type is not supported. Got ", scalar_type_word(given.dtype()));
}

}  // namespace

Tolerance::Tolerance(double number) : value(full({}, number, TensorOptions(kFloat64))) {}
Tolerance::Tolerance(const std::optional<double>& number) {
  if (number) *this = Tolerance(*number);
}
Tolerance::Tolerance(Tensor numbers) : value(std::move(numbers)) {}

Tensor pinv(const Tensor& a, const Tolerance& atol, const Tolerance& rtol, bool hermitian) {
  check_strided("linalg.pinv", a, "A");
  TERCEL_CHECK(a.dim() >= 2, RuntimeError, "linalg.pinv(", scalar_type_word(a.dtype()), "{", a.sizes(),
               "}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types");
  check_matrices("linalg.pinv", a);
  check_tolerance("linalg.pinv", atol, "atol");
  check_tolerance("linalg.pinv", rtol, "rtol");
  if (hermitian) check_square("linalg.pinv", a);
  const int64_t m = a.size(-2), n = a.size(-1);
  Tensor out;
  {
    const NoRecordGuard no_record;
    if (a.numel() == 0) {
      out = zeros(batch_sizes(a, {n, m}), a.options());
    } else if (hermitian) {
      const EighResult f = eigh(a);
      const Tensor inverse = where(above_tolerance(abs(f.eigenvalues), a, atol, rtol), reciprocal(f.eigenvalues), 0);
      out = matmul(mul(f.eigenvectors, unsqueeze(inverse, -2)), adjoint(f.eigenvectors));
    } else {
      const SvdResult f = linalg::svd(a, false);
      const Tensor inverse = where(above_tolerance(f.S, a, atol, rtol), reciprocal(f.S), 0);
      out = matmul(mul(adjoint(f.Vh), unsqueeze(inverse, -2)), adjoint(f.U));
    }
  }
  if (should_record(a))
    record("PinverseBackward0", out, {a}, [a = SavedTensor(a), out = SavedTensor::output(out)](BackwardCall& call) {
      call.set(0, pinv_gradient(call.grad(), out.get(call), a.get()));
    });
  return out;
}

Tensor matrix_rank(const Tensor& a, const Tolerance& atol, const Tolerance& rtol, bool hermitian) {
  check_matrices("linalg.matrix_rank", a);
  check_tolerance("linalg.matrix_rank", atol, "atol");
  check_tolerance("linalg.matrix_rank", rtol, "rtol");
  if (hermitian) check_square("linalg.matrix_rank", a);
  const NoRecordGuard no_record;
  if (a.numel() == 0) return zeros(batch_sizes(a), TensorOptions(kInt64));
  const Tensor magnitudes = hermitian ? abs(eigvalsh(a)) : svdvals(a);
  return sum(above_tolerance(magnitudes, a, atol, rtol), {-1});
}

}  // namespace tercel::linalg
