// Connectionist temporal classification: sequences of labels without their places in time.
#pragma once

#include "tercel/core/tensor.h"
#include "tercel/ops/nn/loss.h"

namespace tercel {

/**
 * -log of the probability that log_probs [time, n, classes] (or [time, classes]) spell the targets: every step says a
 * label or `blank`, repetitions are merged, then blanks go. Targets are [n, longest], or all in a row. A mean divides
 * each loss by its target's length first. Where no path is as short as the input the loss is infinite, or, with
 * zero_infinity, 0 without a gradient.
 *
 * As in PyTorch the gradient is the one of log_softmax's input: log_probs have to be what that gives. It has no
 * derivative of its own.
 */
TERCEL_OP_API(autocast_f32)
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths,
                int64_t blank = 0, Reduction reduction = Reduction::Mean, bool zero_infinity = false);

}  // namespace tercel
