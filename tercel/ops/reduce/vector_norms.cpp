#include "tercel/ops/reduce/vector_norms.h"

#include <cmath>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/assign_inplace_impl.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/reduce_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"

namespace tercel {

using reduction::check_floating_result;
using reduction::dim_mask;
using reduction::op_index;
using reduction::reduce;
using reduction::reduced_count;
using reduction::share_among;
using reduction::with_reduced_dims;

namespace {

/** The norm in its compute type. */
Tensor norm_value(const Tensor& x, double p, DimMask mask, bool keepdim) {
  const NoRecordGuard no_record;
  const Compute compute = compute_of(x.dtype());
  if (p == 0) return reduce(op_index<op::Sum>, Compute::I64, ne(x, 0), mask, keepdim);
  if (p == 1) return reduce(op_index<op::AbsSum>, compute, x, mask, keepdim);
  if (p == 2) return sqrt(reduce(op_index<op::SquareSum>, compute, x, mask, keepdim));
  if (p == HUGE_VAL) return reduce(op_index<op::AbsMax>, compute, x, mask, keepdim);
  const Tensor magnitudes = abs(to(x, native_dtype(compute)));
  if (p == -HUGE_VAL) return reduce(op_index<op::Min>, compute, magnitudes, mask, keepdim);
  return pow(reduce(op_index<op::Sum>, compute, pow(magnitudes, p), mask, keepdim), 1 / p);
}

/** In grad and norms, reduced dimensions have size 1. */
Tensor norm_gradient(const Tensor& grad, const Tensor& x, const Tensor& norms, double p, DimMask mask) {
  if (p == 0) return mul(zeros_like(x), grad);
  if (p == 1) return mul(sign(x), grad);
  if (p == 2) return mul(x, where(eq(norms, 0), 0, div(grad, norms)));
  if (std::isinf(p)) return mul(sign(x), share_among(grad, eq(abs(x), norms), mask));
  // d|x| is (|x| / norm)^(p - 1); 0 if x or the norm is 0 (for a negative p, if any element is 0).
  const Tensor magnitudes = abs(x);
  const Tensor none = logical_or(eq(magnitudes, 0), eq(norms, 0));
  const Tensor ratio = where(none, 1, div(magnitudes, where(eq(norms, 0), 1, norms)));
  const Tensor slope = where(none, 0, pow(ratio, p - 1));
  return mul(mul(sign(x), slope), grad);
}

Tensor norm_of(const Tensor& x, double p, DimMask mask, bool keepdim) {
  check_floating_result("norm", x.dtype());
  TERCEL_CHECK((p >= 0 && p != HUGE_VAL) || reduced_count(x, mask) != 0, RuntimeError,
               "linalg.vector_norm cannot compute the ", p,
               " norm on an empty tensor because the operation does not have an identity");
  if (x.is_complex()) return norm_of(abs(x), p, mask, keepdim);
  const Tensor out = to(norm_value(x, p, mask, keepdim), x.dtype());
  if (should_record(x))
    record("NormBackward0", out, {x},
           [x = SavedTensor(x), out = SavedTensor::output(out), mask, keepdim, p](BackwardCall& call) {
             const Tensor& input = x.get();
             const size_t ndim = input.sizes().size();
             call.set(0, norm_gradient(with_reduced_dims(call.grad(), ndim, mask, keepdim), input,
                                       with_reduced_dims(out.get(call), ndim, mask, keepdim), p, mask));
           });
  return out;
}

}  // namespace

Tensor norm(const Tensor& x, double p) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_norm(x, p);
  return norm_of(x, p, dim_mask("norm", x, {}), false);
}
Tensor norm(const Tensor& x, double p, IntSpan dim, bool keepdim) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_norm(x, p, dim, keepdim);
  return norm_of(x, p, dim_mask("norm", x, dim), keepdim);
}

Tensor renorm(const Tensor& x, double p, int64_t d, double maxnorm) {
  check_strided("renorm", x, "x");
  TERCEL_CHECK(p > 0, RuntimeError, "renorm: non-positive-norm not supported");
  TERCEL_CHECK(maxnorm >= 0, RuntimeError, "renorm: expected maxnorm to be >= 0 but got ", maxnorm);
  TERCEL_CHECK(x.dim() > 1, RuntimeError, "renorm: input needs at least 2 dimensions, got ", x.dim(), " dimensions");
  const int64_t dim = wrap_dim(d, x.dim());
  DimVector others;
  for (int64_t i = 0; i < x.dim(); ++i)
    if (i != dim) others.push_back(i);
  const Tensor wide = to(x, native_dtype(compute_of(x.dtype())));
  const Tensor norms = norm(wide, p, others, true);
  // The small constant keeps the scaled norm below maxnorm.
  const Tensor scale = where(gt(norms, maxnorm), div(maxnorm, add(norms, 1e-7)), 1.0);
  return to(mul(wide, scale), x.dtype());
}
const Tensor& renorm_(const Tensor& x, double p, int64_t dim, double maxnorm) {
  return assign_inplace("renorm_", x, [&](const Tensor& before) { return renorm(before, p, dim, maxnorm); });
}

}  // namespace tercel
