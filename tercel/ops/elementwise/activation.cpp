#include "tercel/ops/elementwise/activation.h"

#include <cmath>
#include <utility>

#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/assign_inplace_impl.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/promotion_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/composite_impl.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

Tensor floating(const char* op, const Tensor& x) {
  check_strided(op, x);
  if (!x.is_floating_point()) refuse_dtype(str_cat({op, "_cpu"}), x.dtype());
  return x;
}

}  // namespace

Tensor hardtanh(const Tensor& x, Scalar min_val, Scalar max_val) {
  check_strided("hardtanh", x);
  TERCEL_CHECK(x.dtype() != kBool, NotImplementedError, "Bool inputs not supported for hardtanh");
  if (is_integral(x.dtype(), false)) {
    const int64_t least = is_unsigned(x.dtype()) ? 0 : std::numeric_limits<int64_t>::min();
    return clamp(x, std::max(min_val.to_int64(), least), std::max(max_val.to_int64(), least));
  }
  return where(le(x, min_val), min_val, where(ge(x, max_val), max_val, x));
}

Tensor relu6(const Tensor& x) { return hardtanh(x, 0, 6); }
Tensor hardsigmoid(const Tensor& x) { return div(clamp(add(floating("hardsigmoid", x), 3), 0, 6), 6); }
Tensor hardswish(const Tensor& x) { return hardswish_of_floats(floating("hardswish", x)); }

namespace {

Tensor elu_of_scaled(const Tensor& x, const Tensor& is_below, double below, double above, double input_scale) {
  // Replaces elements of the branch not taken: their gradient times zero could be NaN.
  return where(is_below, mul(expm1(mul(where(is_below, x, 0), input_scale)), below), mul(x, above));
}

}  // namespace

Tensor elu(const Tensor& x, double alpha, double scale, double input_scale) {
  if (input_scale == 1) return elu_of(floating("elu", x), alpha * scale, scale);
  return elu_of_scaled(x, le(floating("elu", x), 0), alpha * scale, scale, input_scale);
}
Tensor selu(const Tensor& x) { return elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946); }
Tensor celu(const Tensor& x, double alpha) {
  TERCEL_CHECK(alpha != 0, RuntimeError, "ZeroDivisionError: alpha cannot be 0 for CELU");
  if (alpha == 1) return elu(x);
  // At 0 both sides have slope 1; above it the second derivative is 0, as PyTorch's is at 0.
  return elu_of_scaled(x, lt(floating("elu", x), 0), alpha, 1, 1 / alpha);
}
Tensor mish(const Tensor& x) { return mul(x, tanh(softplus(floating("mish", x)))); }
Tensor logsigmoid(const Tensor& x) { return neg(logaddexp(0, neg(floating("log_sigmoid", x)))); }

Tensor gelu(const Tensor& x, std::string_view approximate) {
  if (approximate == "none") return gelu(x);
  TERCEL_CHECK(approximate == "tanh", RuntimeError, "approximate argument must be either none or tanh.");
  return gelu_tanh(floating("gelu", x));
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  floating("prelu", x);
  check_strided("prelu", weight, "weight");
  TERCEL_CHECK(x.dtype() == weight.dtype(), RuntimeError, "prelu: Type promoting not supported. Got ",
               to_string(x.dtype()), " and ", to_string(weight.dtype()));
  TERCEL_CHECK(weight.dim() <= 1, RuntimeError,
               "prelu: Expected `weight` to be a scalar or 1D tensor, but got ndim = ", weight.dim());
  Tensor slope = weight;
  if (weight.numel() != 1) {
    TERCEL_CHECK(x.dim() > 0, RuntimeError, "Not allow zero-dim input tensor.");
    const int64_t channels = x.dim() > 1 ? x.size(1) : 1;
    TERCEL_CHECK(weight.numel() == channels, RuntimeError,
                 "Mismatch of parameter numbers and input channel size. Found parameter numbers = ", weight.numel(),
                 " and channel size = ", channels, ".");
    DimVector sizes(static_cast<size_t>(x.dim()), 1);
    sizes[1] = channels;
    slope = reshape(weight, sizes);
  } else if (x.dim() == 0) {
    slope = reshape(weight, IntSpan());
  }
  if (weight.numel() == 1 && !should_record(x, weight)) return leaky_relu(x, weight.item<double>());
  return where(gt(x, 0), x, mul(x, slope));
}

Tensor rrelu(const Tensor& x, double lower, double upper, bool training, Generator& generator) {
  floating("rrelu", x);
  for (const auto& [name, bound] : {std::pair{"lower", lower}, std::pair{"upper", upper}})
    TERCEL_CHECK(std::isfinite(bound), RuntimeError, "rrelu: ", name, " bound must be finite, got ", bound);
  TERCEL_CHECK(lower <= upper, RuntimeError, "Lower bound should be less than or equal to the upper bound");
  if (!training) return leaky_relu(x, (lower + upper) / 2);
  return where(le(x, 0), mul(x, uniform_(empty_like(x.detach()), lower, upper, generator)), x);
}

Tensor threshold(const Tensor& x, Scalar limit, Scalar value) {
  check_strided("threshold", x);
  // Both numbers are converted to x's dtype, and truncated for integers.
  const auto number = [&](Scalar s) {
    check_number_fits(x.dtype(), s);
    return scalar_tensor(s, TensorOptions(x.dtype()));
  };
  return where(le(x, number(limit)), number(value), x);
}
Tensor hardshrink(const Tensor& x, double lambd) {
  floating("hardshrink", x);
  // The bound is rounded to x's dtype, like the elements.
  const Tensor bound = to(scalar_tensor(lambd, TensorOptions(kFloat64)), x.dtype());
  return where(logical_and(ge(x, neg(bound)), le(x, bound)), 0, x);
}
Tensor softshrink(const Tensor& x, double lambd) {
  floating("softshrink", x);
  TERCEL_CHECK(lambd >= 0, RuntimeError, "lambda must be greater or equal to 0, but found to be ", lambd, ".");
  // The last branch includes NaN, whose gradient is 1; zeros keep their sign.
  return where(gt(x, lambd), sub(x, lambd), where(ge(x, -lambd), mul(x, 0), add(x, lambd)));
}
Tensor tanhshrink(const Tensor& x) { return sub(x, tanh(x)); }

#define TERCEL_DEFINE_INPLACE(name)                                                         \
  const Tensor& name##_(const Tensor& x) {                                                  \
    return assign_inplace(#name "_", x, [](const Tensor& before) { return name(before); }); \
  }
TERCEL_DEFINE_INPLACE(relu6)
TERCEL_DEFINE_INPLACE(hardsigmoid)
TERCEL_DEFINE_INPLACE(hardswish)
TERCEL_DEFINE_INPLACE(selu)
TERCEL_DEFINE_INPLACE(mish)
#undef TERCEL_DEFINE_INPLACE

const Tensor& hardtanh_(const Tensor& x, Scalar min_val, Scalar max_val) {
  return assign_inplace("hardtanh_", x, [&](const Tensor& before) { return hardtanh(before, min_val, max_val); });
}
const Tensor& elu_(const Tensor& x, double alpha, double scale, double input_scale) {
  return assign_inplace("elu_", x, [&](const Tensor& before) { return elu(before, alpha, scale, input_scale); });
}
const Tensor& celu_(const Tensor& x, double alpha) {
  return assign_inplace("celu_", x, [&](const Tensor& before) { return celu(before, alpha); });
}
const Tensor& rrelu_(const Tensor& x, double lower, double upper, bool training, Generator& generator) {
  return assign_inplace("rrelu_", x,
                        [&](const Tensor& before) { return rrelu(before, lower, upper, training, generator); });
}
const Tensor& threshold_(const Tensor& x, Scalar limit, Scalar value) {
  return assign_inplace("threshold_", x, [&](const Tensor& before) { return threshold(before, limit, value); });
}

}  // namespace tercel
