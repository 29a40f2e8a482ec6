// Matrix exponential.
#include <algorithm>
#include <array>
#include <cmath>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/linalg_impl.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/views/cat.h"

namespace tercel::linalg {

Tensor matrix_exp(const Tensor& a) {
  if (a.defined() && (a.dtype() == kFloat16 || a.dtype() == kBFloat16))
    return to(matrix_exp(to(a, kFloat32)), a.dtype());
  check_square("linalg.matrix_exp", a);
  if (a.numel() == 0) return clone(a);
  Tensor out;
  const int64_t n = a.size(-1);
  {
    const NoRecordGuard no_record;
    // Higham's approximation of degree 13 is accurate to double precision up to this norm; larger matrices are scaled
    // down by powers of two, and the result is squared as often.
    constexpr double kLargest = 5.371920351148152;
    const Tensor norms = contiguous(to(matrix_norm(a, 1.0), kFloat64));
    const Tensor scale = empty(norms.sizes(), TensorOptions(kFloat64)),
                 halvings = empty(norms.sizes(), TensorOptions(kInt64));
    int64_t most = 0;
    for (int64_t i = 0; i < norms.numel(); ++i) {
      const double norm = norms.data<double>()[i];
      const auto times = std::isfinite(norm) && norm > kLargest
                             ? static_cast<int64_t>(std::ceil(std::log2(norm / kLargest)))
                             : int64_t{0};
      halvings.data<int64_t>()[i] = times;
      scale.data<double>()[i] = std::ldexp(1.0, static_cast<int>(-times));
      most = std::max(most, times);
    }
    constexpr std::array<double, 14> kB = {64764752532480000,
                                           32382376266240000,
                                           7771770303897600,
                                           1187353796428800,
                                           129060195264000,
                                           10559470521600,
                                           670442572800,
                                           33522128640,
                                           1323241920,
                                           40840800,
                                           960960,
                                           16380,
                                           182,
                                           1};
    // Divided by the first coefficient, so that float32 does not overflow.
    const auto c = [&](size_t i) { return Scalar(kB[i] / kB[0]); };
    const Tensor x = mul(a, per_matrix(to(scale, real_dtype(a.dtype())))), identity = eye(n, -1, a.options());
    const Tensor x2 = matmul(x, x), x4 = matmul(x2, x2), x6 = matmul(x4, x2);
    const auto polynomial = [&](size_t first) {
      const Tensor high = matmul(x6, add(add(mul(x6, c(first + 12)), mul(x4, c(first + 10))), mul(x2, c(first + 8))));
      const Tensor low = add(add(mul(x6, c(first + 6)), mul(x4, c(first + 4))), mul(x2, c(first + 2)));
      return add(add(high, low), mul(identity, c(first)));
    };
    const Tensor odd = matmul(x, polynomial(1)), even = polynomial(0);
    out = solve_ex(sub(even, odd), add(even, odd)).result;
    for (int64_t step = 0; step < most; ++step) out = where(per_matrix(gt(halvings, step)), matmul(out, out), out);
  }
  if (should_record(a))
    record("LinalgMatrixExpBackward0", out, {a}, [a = SavedTensor(a)](BackwardCall& call) {
      // The corner of exp [[A^H, G], [0, A^H]] is the derivative in the direction G.
      const Tensor ah = adjoint(a.get());
      const int64_t size = ah.size(-1);
      const Tensor top[] = {ah, call.grad()}, bottom[] = {zeros_like(ah), ah};
      const Tensor rows[] = {cat(top, -1), cat(bottom, -1)};
      call.set(0, narrow(narrow(matrix_exp(cat(rows, -2)), -2, 0, size), -1, size, size));
    });
  return out;
}

}  // namespace tercel::linalg
