// Losses: what training makes small.
#pragma once

#include <array>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"

namespace tercel {

/** What becomes of the losses of the elements. */
enum class Reduction : uint8_t { None, Mean, Sum };
constexpr auto enum_names(Reduction) {
  return std::to_array<EnumName<Reduction>>(
      {{Reduction::None, "none"}, {Reduction::Mean, "mean"}, {Reduction::Sum, "sum"}});
}

/**
 * -(y log p + (1 - y) log(1 - p)) with p = sigmoid(x), exact for large |x| too; times weight (which broadcasts to x). A
 * mean divides by the number of elements, whatever the weights. Targets (x's sizes; ValueError) may be of any dtype.
 */
TERCEL_API Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                                                   Reduction reduction = Reduction::Mean);

/** (x - target)^2; sizes must be the same (ValueError). */
TERCEL_API Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean);

}  // namespace tercel
