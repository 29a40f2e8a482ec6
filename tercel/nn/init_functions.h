// Initial values, as in torch.nn.init. Each fills x in place, without recording, from the default generator.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"

namespace tercel::nn::init {

/** The nonlinearity after the initialised layer; Linear also means convolutions and sigmoid (gain 1). */
enum class Nonlinearity : uint8_t { Linear, Tanh, Relu, LeakyRelu, Selu };
constexpr auto enum_names(Nonlinearity) {
  return std::to_array<EnumName<Nonlinearity>>({{Nonlinearity::Linear, "linear"},
                                                {Nonlinearity::Tanh, "tanh"},
                                                {Nonlinearity::Relu, "relu"},
                                                {Nonlinearity::LeakyRelu, "leaky_relu"},
                                                {Nonlinearity::Selu, "selu"}});
}
enum class FanMode : uint8_t { FanIn, FanOut };
constexpr auto enum_names(FanMode) {
  return std::to_array<EnumName<FanMode>>({{FanMode::FanIn, "fan_in"}, {FanMode::FanOut, "fan_out"}});
}

/** Factor of the standard deviation that compensates for the nonlinearity; param is a leaky ReLU's slope. */
TERCEL_API double calculate_gain(Nonlinearity nonlinearity, double param = 0.01);
/** Uniform numbers in [a, b); below it, normal ones. */
TERCEL_API const Tensor& uniform_(const Tensor& x, double a = 0, double b = 1);
TERCEL_API const Tensor& normal_(const Tensor& x, double mean = 0, double std = 1);
/** Normal numbers truncated to [a, b]. */
TERCEL_API const Tensor& trunc_normal_(const Tensor& x, double mean = 0, double std = 1, double a = -2, double b = 2);
TERCEL_API const Tensor& constant_(const Tensor& x, double value);
TERCEL_API const Tensor& zeros_(const Tensor& x);
TERCEL_API const Tensor& ones_(const Tensor& x);
/** Ones on the diagonal of a matrix; ValueError for other tensors. */
TERCEL_API const Tensor& eye_(const Tensor& x);
/** The identity as a convolution's weight [out, in, kernel...]; ValueError for other tensors. */
TERCEL_API const Tensor& dirac_(const Tensor& x, int64_t groups = 1);
/** Variance 2 gain^2 / (fan in + fan out); ValueError for fewer than 2 dimensions, also in the next three. */
TERCEL_API const Tensor& xavier_uniform_(const Tensor& x, double gain = 1);
TERCEL_API const Tensor& xavier_normal_(const Tensor& x, double gain = 1);
/** Variance gain^2 / fan; a is the slope of a leaky ReLU. */
TERCEL_API const Tensor& kaiming_uniform_(const Tensor& x, double a = 0, FanMode mode = FanMode::FanIn,
                                          Nonlinearity nonlinearity = Nonlinearity::LeakyRelu);
TERCEL_API const Tensor& kaiming_normal_(const Tensor& x, double a = 0, FanMode mode = FanMode::FanIn,
                                         Nonlinearity nonlinearity = Nonlinearity::LeakyRelu);
/** Rows (or, if there are more of them, columns) orthonormal, times gain. */
TERCEL_API const Tensor& orthogonal_(const Tensor& x, double gain = 1);

}  // namespace tercel::nn::init
