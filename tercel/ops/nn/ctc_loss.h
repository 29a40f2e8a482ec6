// Connectionist temporal classification loss, for label sequences without alignment.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/nn/loss.h"

namespace tercel {

/**
 * -log of the probability that log_probs [time, n, classes] (or [time, classes]) produce the targets: each step emits a
 * label or `blank`, repeated labels are merged, then blanks are removed. Targets are [n, longest], or all concatenated.
 * A mean first divides each loss by its target length. If the input is too short for the target the loss is infinite,
 * or, with zero_infinity, 0 with a zero gradient.
 *
 * As in PyTorch the gradient is that of the input of log_softmax, so log_probs must be its output. Second derivatives
 * are not supported.
 */
TERCEL_OP_API(autocast_f32)
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths,
                int64_t blank = 0, Reduction reduction = Reduction::Mean, bool zero_infinity = false);

}  // namespace tercel
