// Activation functions composed of other ops.
#pragma once

#include <string_view>

#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"

#define TERCEL_ACTIVATION(name)                    \
  TERCEL_OP_API(out) Tensor name(const Tensor& x); \
  TERCEL_API const Tensor& name##_(const Tensor& x);

namespace tercel {

/** x clamped to [min_val, max_val]; the gradient is 0 at the bounds. */
TERCEL_OP_API(out) Tensor hardtanh(const Tensor& x, Scalar min_val = -1, Scalar max_val = 1);
TERCEL_API const Tensor& hardtanh_(const Tensor& x, Scalar min_val = -1, Scalar max_val = 1);
/** hardtanh(x, 0, 6). */
TERCEL_API Tensor relu6(const Tensor& x);
TERCEL_API const Tensor& relu6_(const Tensor& x);
/** relu6(x + 3) / 6. */
TERCEL_ACTIVATION(hardsigmoid)
/** x * hardsigmoid(x). */
TERCEL_ACTIVATION(hardswish)
/** scale * x where x is positive, else scale * alpha * (exp(input_scale * x) - 1). */
TERCEL_OP_API(out) Tensor elu(const Tensor& x, double alpha = 1, double scale = 1, double input_scale = 1);
TERCEL_API const Tensor& elu_(const Tensor& x, double alpha = 1, double scale = 1, double input_scale = 1);
/** elu() with the constants that preserve mean 0 and variance 1. */
TERCEL_API Tensor selu(const Tensor& x);
TERCEL_API const Tensor& selu_(const Tensor& x);
/** x where positive, else alpha * (exp(x / alpha) - 1). RuntimeError if alpha is 0. */
TERCEL_API Tensor celu(const Tensor& x, double alpha = 1);
TERCEL_API const Tensor& celu_(const Tensor& x, double alpha = 1);
/** x * tanh(log(1 + exp(x))). */
TERCEL_ACTIVATION(mish)
/** log(sigmoid(x)) without intermediate overflow. */
TERCEL_OP_API(out) Tensor logsigmoid(const Tensor& x);
/** gelu(x), or its tanh approximation if `approximate` is "tanh"; RuntimeError unless that is "none" or "tanh". */
TERCEL_OP_API(out) Tensor gelu(const Tensor& x, std::string_view approximate);
/** x where positive, else weight * x, with one weight or one per channel (dimension 1; RuntimeError otherwise). */
TERCEL_OP_API(method, python, python_nn, autocast_lower) Tensor prelu(const Tensor& x, const Tensor& weight);
/** x where positive, else slope * x: the slope is drawn per element in training, else the mean of both bounds. */
TERCEL_OP_API(python)
Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false,
             Generator& generator = default_generator());
TERCEL_OP_API(python, python_nn)
const Tensor& rrelu_(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false,
                     Generator& generator = default_generator());
/** x where it exceeds the threshold, else `value`. */
TERCEL_OP_API(python, out) Tensor threshold(const Tensor& x, Scalar threshold, Scalar value);
TERCEL_OP_API(python, python_nn) const Tensor& threshold_(const Tensor& x, Scalar threshold, Scalar value);
/** x where |x| exceeds lambd, else 0. */
TERCEL_OP_API(method, python, python_nn, out) Tensor hardshrink(const Tensor& x, double lambd = 0.5);
/** x shrunk towards 0 by lambd, and 0 where |x| <= lambd. RuntimeError for a negative lambd. */
TERCEL_OP_API(python_nn, out) Tensor softshrink(const Tensor& x, double lambd = 0.5);
/** x - tanh(x). */
TERCEL_OP_API(python_nn) Tensor tanhshrink(const Tensor& x);

}  // namespace tercel

#undef TERCEL_ACTIVATION
