#include "tercel/ops/common/complex_logs_impl.h"

#include <limits>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

Tensor complex_logaddexp(const Tensor& a, const Tensor& b) {
  const ScalarType dtype = promote_types(a.dtype(), b.dtype());
  const Tensor x = to(a, dtype), y = to(b, dtype);
  const Tensor ahead = ge(real(x.detach()), real(y.detach()));
  const Tensor larger = where(ahead, x, y), smaller = where(ahead, y, x);
  // Infinities cannot be subtracted: the larger one is the result.
  const Tensor apart =
      where(isinf(real(larger.detach())), -std::numeric_limits<double>::infinity(), sub(smaller, larger));
  return add(larger, log1p(exp(apart)));
}

Tensor complex_logsumexp(const Tensor& x, IntSpan dims, bool keepdim) {
  const Tensor top = amax(real(x.detach()), dims, true);
  const Tensor shift = where(isfinite(top), top, 0);
  const Tensor sums = log(sum(exp(sub(x, shift)), dims, keepdim));
  return add(sums, keepdim ? shift : view(contiguous(shift), sums.sizes()));
}

Tensor complex_logcumsumexp(const Tensor& x, int64_t dim) {
  if (x.dim() == 0) return clone(x);
  // Step k adds the value k positions before, which is the sum of k elements by then.
  Tensor out = clone(x);
  const int64_t n = x.size(dim);
  for (int64_t k = 1; k < n; k *= 2) {
    const Tensor parts[] = {narrow(out, dim, 0, k),
                            complex_logaddexp(narrow(out, dim, k, n - k), narrow(out, dim, 0, n - k))};
    out = cat(parts, dim);
  }
  return out;
}

}  // namespace tercel
