// Loss functions for regression and binary classification.
#pragma once

#include <array>

#include "tercel/core/tensor.h"
#include "tercel/util/enum_names.h"

namespace tercel {

/** How the losses of the elements are reduced. */
enum class Reduction : uint8_t { None, Mean, Sum };
constexpr auto enum_names(Reduction) {
  return std::to_array<EnumName<Reduction>>(
      {{Reduction::None, "none"}, {Reduction::Mean, "mean"}, {Reduction::Sum, "sum"}});
}

/** Applies a reduction to the losses of elements. */
TERCEL_API Tensor reduce_loss(const Tensor& losses, Reduction reduction);

/**
 * -(y log p + (1 - y) log(1 - p)) with p = sigmoid(x), accurate also for large |x|; times weight (which broadcasts to
 * x). A mean divides by the number of elements, whatever the weights. Targets (x's sizes; RuntimeError) have any dtype.
 */
TERCEL_OP_API(autocast_f32)
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                                        Reduction reduction = Reduction::Mean);
/** The same with the term of positive targets multiplied by pos_weight (which broadcasts to x). */
TERCEL_OP_API(autocast_f32)
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight,
                                        Reduction reduction, const Tensor& pos_weight);
/** -(y log x + (1 - y) log(1 - x)) for probabilities x; logarithms are clamped to at least -100. */
TERCEL_OP_API(out, autocast_f32)
Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                            Reduction reduction = Reduction::Mean);

/** (x - target)^2; sizes must be equal (RuntimeError). */
TERCEL_OP_API(out, autocast_f32)
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean);
// In the following functions x and target are broadcast.
/** |x - target|. */
TERCEL_OP_API(autocast_f32)
Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean);
/** d^2 / (2 beta) where d = |x - target| < beta, else d - beta / 2. */
TERCEL_OP_API(out, autocast_f32)
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean, double beta = 1);
/** d^2 / 2 where d = |x - target| < delta, else delta * (d - delta / 2). */
TERCEL_OP_API(out, autocast_f32)
Tensor huber_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean, double delta = 1);
/** target * (log(target) - x) for log-probabilities x; with log_target the target is a log-probability too. */
TERCEL_OP_API(autocast_f32)
Tensor kl_div(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean, bool log_target = false);
/** exp(x) - target * x, or x - target * log(x + eps); full adds Stirling's approximation where the target exceeds 1. */
TERCEL_OP_API(autocast_f32)
Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, bool log_input = true, bool full = false,
                        double eps = 1e-8, Reduction reduction = Reduction::Mean);
/** (log var + (x - target)^2 / var) / 2 with var clamped to at least eps; full adds log(2 pi) / 2. */
TERCEL_API Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var, bool full = false,
                                    double eps = 1e-6, Reduction reduction = Reduction::Mean);

}  // namespace tercel
