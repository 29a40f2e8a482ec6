// Fully connected layers: activation(x W + b), single or as an MLP.
#pragma once

#include <array>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"

namespace tercel {

/** Activation applied in the same pass as the layer. */
enum class Activation : uint8_t { None, Relu };
constexpr auto enum_names(Activation) {
  return std::to_array<EnumName<Activation>>({{Activation::None, "Non"}, {Activation::Relu, "Relu"}});
}

/**
 * x [..., in] weight^T + bias; weight [out, in] (PyTorch's layout), also packed by to_mkldnn(), or [in]; bias [out] or
 * undefined.
 */
TERCEL_OP_API(python_nn, out, autocast_lower, layout_any)
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

/** activation(x [n, in] weight + bias); weight [in, out] (HugeCTR's layout), bias [out] or undefined. */
TERCEL_API Tensor inner_product(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                                Activation activation = Activation::None);

/**
 * A sequence of inner_product layers, with a weight, a bias (or an undefined tensor) and an activation for each. Gives
 * the same result as single layers; its backward saves a pass over each hidden layer.
 */
TERCEL_API Tensor mlp(const Tensor& x, Span<Tensor> weights, Span<Tensor> biases, Span<Activation> activations);

}  // namespace tercel
