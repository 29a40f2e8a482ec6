// Classification losses: x has one score per class; targets are class indices or probabilities of each class.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/nn/loss.h"

namespace tercel {

/**
 * -x[target] * weight[target] for log-probabilities x [n, classes, ...] (or [classes]) and int64 targets [n, ...].
 * Targets equal to ignore_index give 0. A mean divides by the sum of the weights used. IndexError for a target out of
 * range, ValueError for mismatched sizes.
 */
TERCEL_OP_API(out, autocast_f32)
Tensor nll_loss(const Tensor& x, const Tensor& target, const Tensor& weight = {}, Reduction reduction = Reduction::Mean,
                int64_t ignore_index = -100);
/**
 * nll_loss of log_softmax(x); or, for a floating-point target of x's sizes, the mean of -target * log_softmax(x).
 * label_smoothing is the weight of a uniform distribution that is mixed into the target.
 */
TERCEL_OP_API(autocast_f32)
Tensor cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                     Reduction reduction = Reduction::Mean, int64_t ignore_index = -100, double label_smoothing = 0);
/** Mean over the other classes of max(0, margin - x[target] + x[class])^p, times weight[target]. p is 1 or 2. */
TERCEL_OP_API(out, autocast_f32)
Tensor multi_margin_loss(const Tensor& x, const Tensor& target, int64_t p = 1, double margin = 1,
                         const Tensor& weight = {}, Reduction reduction = Reduction::Mean);

/**
 * Sum over pairs of a target class and a non-target class of max(0, 1 - x[target] + x[class]), divided by the number of
 * classes: x and int64 targets [n, classes] or [classes]; a row's targets end before the first -1.
 */
TERCEL_OP_API(out, autocast_f32)
Tensor multilabel_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean);
/** Mean over classes of -(y log sigmoid(x) + (1 - y) log sigmoid(-x)) for targets y, times the weight of the class. */
TERCEL_API Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                                              Reduction reduction = Reduction::Mean);

/** x where target is 1, max(0, margin - x) where it is -1. */
TERCEL_OP_API(autocast_f32)
Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin = 1,
                            Reduction reduction = Reduction::Mean);
/** 1 - cos(a, b) where target is 1, max(0, cos(a, b) - margin) where it is -1. */
TERCEL_OP_API(autocast_f32)
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin = 0,
                             Reduction reduction = Reduction::Mean);
/** max(0, -target * (a - b) + margin). */
TERCEL_OP_API(autocast_f32)
Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin = 0,
                           Reduction reduction = Reduction::Mean);
/** max(0, |anchor - positive| - |anchor - negative| + margin); swap uses |positive - negative| if less. */
TERCEL_OP_API(autocast_f32)
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin = 1,
                           double p = 2, double eps = 1e-6, bool swap = false, Reduction reduction = Reduction::Mean);
/** log(1 + exp(-target * x)). */
TERCEL_OP_API(out, autocast_f32)
Tensor soft_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean);

}  // namespace tercel
