#include "tercel/ops/reduce/var_std.h"

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/reduce_impl.h"
#include "tercel/ops/views/views.h"

namespace tercel {

using reduction::dim_mask;
using reduction::is_reduced;
using reduction::op_index;
using reduction::reduce;
using reduction::reduced_count;
using reduction::with_reduced_dims;

namespace {

/** Dimensions to reduce, and the divisor of the sum of squares. */
struct Moment {
  DimMask mask;
  double divisor;
  bool keepdim;

  Moment(const char* op, const Tensor& x, IntSpan dims, double correction, bool keep)
      : mask(dim_mask(op, x, dims)), keepdim(keep) {
    TERCEL_CHECK(x.is_differentiable(), NotImplementedError, op, " only support floating point and complex dtypes");
    divisor = std::max(0.0, static_cast<double>(reduced_count(x, mask)) - correction);
  }

  /** The dimensions to reduce, as a list. */
  DimVector dims(const Tensor& x) const {
    DimVector out;
    for (size_t d = 0; d < x.sizes().size(); ++d)
      if (is_reduced(mask, d)) out.push_back(static_cast<int64_t>(d));
    return out;
  }
  Tensor distances(const Tensor& x) const { return sub(x, x.dim() == 0 ? mean(x) : mean(x, dims(x), true)); }

  /** The variance in its compute type. */
  Tensor variance(const Tensor& x) const {
    const NoRecordGuard no_record;
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

Tensor std_gradient(const Moment& moment, const Tensor& grad, const Tensor& x, const Tensor& root) {
  return moment.gradient(where(eq(root, 0), 0, div(grad, mul(root, 2.0))), x);
}

Tensor std_of(const Moment& moment, const Tensor& x) {
  const Tensor out = to(sqrt(moment.variance(x)), real_dtype(x.dtype()));
  if (should_record(x))
    record("StdBackward0", out, {x}, [x = SavedTensor(x), out = SavedTensor::output(out), moment](BackwardCall& call) {
      call.set(0, std_gradient(moment, call.grad(), x.get(), out.get(call)));
    });
  return out;
}

/** The variance or standard deviation, and the mean; not recorded. */
template <class SpreadOf>
std::pair<Tensor, Tensor> without_history(const Tensor& x, IntSpan dims, bool keepdim, SpreadOf spread_of) {
  const NoRecordGuard no_record;
  return {spread_of(), mean(x, dims, keepdim)};
}

/** The gradient of x, given those of the mean and of the variance (or deviation), either of which may be undefined. */
Tensor with_mean_gradient(const Moment& moment, const Tensor& grad, const Tensor& x, const Tensor& of_spread) {
  if (!grad.defined()) return of_spread;
  const Tensor wide = with_reduced_dims(grad, x.sizes().size(), moment.mask, moment.keepdim);
  const Tensor own = expand(div(wide, static_cast<double>(reduced_count(x, moment.mask))), x.sizes());
  return of_spread.defined() ? add(of_spread, own) : own;
}

}  // namespace

Tensor var(const Tensor& x, IntSpan dim, double correction, bool keepdim) {
  return var_of(Moment("std and var", x, dim, correction, keepdim), x);
}
Tensor std(const Tensor& x, IntSpan dim, double correction, bool keepdim) {
  return std_of(Moment("std and var", x, dim, correction, keepdim), x);
}
VarAndMean var_mean(const Tensor& x, IntSpan dim, double correction, bool keepdim) {
  const Moment moment("var_mean", x, dim, correction, keepdim);
  const auto [spread, center] = without_history(x, dim, keepdim, [&] { return var_of(moment, x); });
  if (should_record(x)) {
    const Tensor outs[] = {spread, center};
    record_outputs("VarMeanBackward0", outs, {x}, [x = SavedTensor(x), moment](BackwardCall& call) {
      const Tensor value = x.get();
      call.set(0, with_mean_gradient(moment, call.grad(1), value,
                                     call.grad(0).defined() ? moment.gradient(call.grad(0), value) : Tensor()));
    });
  }
  return {spread, center};
}
StdAndMean std_mean(const Tensor& x, IntSpan dim, double correction, bool keepdim) {
  const Moment moment("std_mean", x, dim, correction, keepdim);
  const auto [spread, center] = without_history(x, dim, keepdim, [&] { return std_of(moment, x); });
  if (should_record(x)) {
    const Tensor outs[] = {spread, center};
    record_outputs("StdMeanBackward0", outs, {x},
                   [x = SavedTensor(x), root = SavedTensor::output(spread), moment](BackwardCall& call) {
                     const Tensor value = x.get();
                     call.set(0, with_mean_gradient(moment, call.grad(1), value,
                                                    call.grad(0).defined()
                                                        ? std_gradient(moment, call.grad(0), value, root.get(call))
                                                        : Tensor()));
                   });
  }
  return {spread, center};
}

}  // namespace tercel
