// Layers of matrix products: activation(x W + b), one or many in a row.
#pragma once

#include <array>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"

namespace tercel {

/** What follows a layer in the same pass. */
enum class Activation : uint8_t { None, Relu };
constexpr auto enum_names(Activation) {
  return std::to_array<EnumName<Activation>>({{Activation::None, "Non"}, {Activation::Relu, "Relu"}});
}

/** x [..., in] weight^T + bias; weight [out, in] as PyTorch keeps it, or [in]; bias [out] or undefined. */
TERCEL_OP_API(python_nn, out, autocast_lower)
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

/** activation(x [n, in] weight + bias); weight [in, out] as HugeCTR keeps it, bias [out] or undefined. */
TERCEL_API Tensor inner_product(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                                Activation activation = Activation::None);

/**
 * One inner_product after another, with a weight, a bias (or an undefined tensor) and an activation for each. The same
 * result as single layers; their gradients save a pass over each hidden layer.
 */
TERCEL_API Tensor mlp(const Tensor& x, Span<Tensor> weights, Span<Tensor> biases, Span<Activation> activations);

}  // namespace tercel
