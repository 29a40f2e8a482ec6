// One step of an update rule on tensors, shared by the trainer's, the group and Python's optimizers.
#pragma once

#include "tercel/autograd/gradient.h"
#include "tercel/core/tensor.h"
#include "tercel/optim/rules.h"

namespace tercel::optim {

/** The number of states that the rule keeps. */
TERCEL_API int num_states(RuleId rule);

/**
 * RuntimeError "<name>: ..." unless the number of states is the rule's, weight and states have equal sizes and the
 * gradient fits, written elements overlap neither each other nor, except for identical ones, the gradient, and none is
 * an inference tensor outside inference mode; NotImplementedError for a dtype that is neither floating nor complex.
 */
TERCEL_API void check_rule_operands(const char* name, RuleId rule, const Tensor& weight, Span<Tensor> states,
                                    const Gradient& gradient);

/**
 * Changes weight and states in place, without recording. The operands must have passed check_rule_operands(); they may
 * have any strides and different dtypes, and complex numbers are treated as pairs. A row gradient must have unique
 * ascending rows: only those change; IndexError for a row out of range. Returns whether every stored value is finite.
 */
TERCEL_API bool apply_rule(const char* name, RuleId rule, const Step<double>& step, const Tensor& weight,
                           Span<Tensor> states, const Gradient& gradient);

/**
 * A step of all rows [begin, end) of a weight with contiguous rows: those of the gradient, unique, ascending and in
 * that range, or undefined for none, by `step`; the others by `rest`, with a gradient of zero. `zero_row` is as many
 * zeros as a row has. Operands are those of apply_rule(), of the weight's dtype and with contiguous rows. Returns
 * whether every stored value is finite.
 */
TERCEL_API bool apply_rule_between(const char* name, RuleId rule, const Step<double>& step, const Step<double>& rest,
                                   const Tensor& weight, Span<Tensor> states, const Gradient& gradient,
                                   const Tensor& zero_row, int64_t begin, int64_t end);

/** The row stride of a tensor whose rows are contiguous (0 without elements), else -1: such operands are copied in
 * every step. */
TERCEL_API int64_t row_stride(const Tensor& t);

/** IndexError "<name>: ..." for a row out of range among unique ascending rows [n] int64. */
TERCEL_API void check_ascending_rows(const char* name, const Tensor& rows, const Tensor& weight);

/** IndexError "<name>: ..." for a row out of range among rows [n] int64, in any order. */
TERCEL_API void check_row_range(const char* name, const Tensor& rows, const Tensor& weight);

}  // namespace tercel::optim
