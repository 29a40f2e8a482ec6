// One step of an update rule on tensors: what the trainer's optimizers, those over groups and Python's all call.
#pragma once

#include "tercel/autograd/gradient.h"
#include "tercel/core/tensor.h"
#include "tercel/optim/rules.h"

namespace tercel::optim {

/** How many states the rule keeps. */
TERCEL_API int num_states(RuleId rule);

/**
 * RuntimeError "<name>: ..." unless the states are as many as the rule's, weight and states have one size and the
 * gradient fits, no element that is written lies in another one or in part of the gradient, and none is an inference
 * tensor outside inference mode; NotImplementedError for a dtype that is neither floating nor complex.
 */
TERCEL_API void check_rule_operands(const char* name, RuleId rule, const Tensor& weight, Span<Tensor> states,
                                    const Gradient& gradient);

/**
 * Changes weight and states in place, whatever autograd records. Operands that check_rule_operands() has seen, with any
 * strides and each with its own dtype; complex numbers are pairs. Of a gradient of rows, each row comes once,
 * ascending: only those rows change, and IndexError for one outside. Gives whether every value that was stored is
 * finite.
 */
TERCEL_API bool apply_rule(const char* name, RuleId rule, const Step<double>& step, const Tensor& weight,
                           Span<Tensor> states, const Gradient& gradient);

}  // namespace tercel::optim
