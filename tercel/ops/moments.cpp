#include "tercel/ops/moments.h"

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/ops/binary.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/reduce.h"
#include "tercel/ops/reduce_impl.h"
#include "tercel/ops/ternary.h"
#include "tercel/ops/unary.h"

namespace tercel {

using reduction::dim_mask;
using reduction::is_reduced;
using reduction::op_index;
using reduction::reduce;
using reduction::reduced_count;
using reduction::with_reduced_dims;

namespace {

/** What is reduced, and by what sums of squares are divided. */
struct Moment {
  DimMask mask;
  double divisor;
  bool keepdim;

  Moment(const char* op, const Tensor& x, IntSpan dims, double correction, bool keep)
      : mask(dim_mask(op, x, dims)), keepdim(keep) {
    TERCEL_CHECK(x.is_differentiable(), RuntimeError, op, " only support floating point and complex dtypes");
    divisor = std::max(0.0, static_cast<double>(reduced_count(x, mask)) - correction);
  }

  /** Kept dimensions as a list. */
  DimVector dims(const Tensor& x) const {
    DimVector out;
    for (size_t d = 0; d < x.sizes().size(); ++d)
      if (is_reduced(mask, d)) out.push_back(static_cast<int64_t>(d));
    return out;
  }
  Tensor distances(const Tensor& x) const { return sub(x, x.dim() == 0 ? mean(x) : mean(x, dims(x), true)); }

  /** The variance in the type that it is calculated in. */
  Tensor variance(const Tensor& x) const {
    const NoGradGuard no_grad;
    const Tensor away = distances(to(x, native_dtype(compute_of(x.dtype()))));
    const Tensor real = x.is_complex() ? abs(away) : away;
    return div(reduce(op_index<op::SquareSum>, compute_of(real.dtype()), real, mask, keepdim), divisor);
  }
  Tensor gradient(const Tensor& grad, const Tensor& x) const {
    return mul(distances(x), with_reduced_dims(mul(grad, 2 / divisor), x.sizes().size(), mask, keepdim));
  }
};

Tensor var_of(const Moment& moment, const Tensor& x) {
  const Tensor out = to(moment.variance(x), real_dtype(x.dtype()));
  if (should_record(x))
    record("VarBackward0", out, {x},
           [x = SavedTensor(x), moment](BackwardCall& call) { call.set(0, moment.gradient(call.grad(), x.get())); });
  return out;
}

Tensor std_of(const Moment& moment, const Tensor& x) {
  const Tensor out = to(sqrt(moment.variance(x)), real_dtype(x.dtype()));
  if (should_record(x))
    record("StdBackward0", out, {x}, [x = SavedTensor(x), out = SavedTensor::output(out), moment](BackwardCall& call) {
      const Tensor& root = out.get(call);
      const Tensor half = div(call.grad(), mul(root, 2.0));
      call.set(0, moment.gradient(where(eq(root, 0), 0, half), x.get()));
    });
  return out;
}

}  // namespace

Tensor var(const Tensor& x, IntSpan dims, double correction, bool keepdim) {
  return var_of(Moment("std and var", x, dims, correction, keepdim), x);
}
Tensor std(const Tensor& x, IntSpan dims, double correction, bool keepdim) {
  return std_of(Moment("std and var", x, dims, correction, keepdim), x);
}
VarAndMean var_mean(const Tensor& x, IntSpan dims, double correction, bool keepdim) {
  return {var_of(Moment("var_mean", x, dims, correction, keepdim), x), mean(x, dims, keepdim)};
}
StdAndMean std_mean(const Tensor& x, IntSpan dims, double correction, bool keepdim) {
  return {std_of(Moment("std_mean", x, dims, correction, keepdim), x), mean(x, dims, keepdim)};
}

}  // namespace tercel
