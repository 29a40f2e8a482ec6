// Update rules for torch.optim's options: names, defaults and formulas are PyTorch's.
//
// GroupOptimizer (group_optimizer.h) and Python's optimizers manage groups and states; both call these functions to
// update parameters.
#pragma once

#include <cstdint>
#include <limits>

#include "tercel/autograd/gradient.h"
#include "tercel/core/tensor.h"

namespace tercel::optim {

/** The optimizers that have a rule; Ftrl is the trainer's. */
enum class GroupRule : uint8_t { SGD, Adam, AdamW, Adagrad, RMSprop, Ftrl };

/** Options of all optimizers, with torch.optim's names; each optimizer uses some of them. */
struct GroupOptions {
  /** Stands for the optimizer's default in torch.optim, which replaces it when the group is added. */
  static constexpr double kOwnDefault = std::numeric_limits<double>::lowest();

  double lr = kOwnDefault;               ///< 1e-3; 0.01 of Adagrad and RMSprop
  double weight_decay = kOwnDefault;     ///< 0; 0.01 of AdamW
  double momentum = 0;                   ///< SGD, RMSprop
  double dampening = 0;                  ///< SGD
  bool nesterov = false;                 ///< SGD
  bool maximize = false;                 ///< gradient ascent
  double beta1 = 0.9;                    ///< Adam, AdamW
  double beta2 = 0.999;                  ///< Adam, AdamW
  double eps = kOwnDefault;              ///< Adam, AdamW, RMSprop: 1e-8; Adagrad: 1e-10
  bool amsgrad = false;                  ///< Adam, AdamW
  double alpha = 0.99;                   ///< RMSprop
  bool centered = false;                 ///< RMSprop
  double lr_decay = 0;                   ///< Adagrad
  double initial_accumulator_value = 0;  ///< Adagrad
  double beta = 0;                       ///< Ftrl: smoothing of the learning rate
  double lambda1 = 0;                    ///< Ftrl: L1 strength
  double lambda2 = 0;                    ///< Ftrl: L2 strength
};

/** Name of an optimizer, such as "SGD". */
TERCEL_API const char* group_rule_name(GroupRule rule);
/** Replaces kOwnDefault by torch.optim's defaults. */
TERCEL_API GroupOptions with_defaults(GroupRule rule, GroupOptions options);
/** ValueError for an option that is out of range. */
TERCEL_API void check_group_options(const GroupOptions& options);

/** torch.optim's names of a parameter's states, in the order of the rule's states. */
TERCEL_API Span<const char*> group_state_names(GroupRule rule, const GroupOptions& options);
/** Initial value of the states. */
TERCEL_API double group_state_start(GroupRule rule, const GroupOptions& options);

/** RuntimeError "Adam does not support ..." for a gradient of rows or of a sparse layout that the optimizer refuses. */
TERCEL_API void check_takes_gradient(GroupRule rule, const GroupOptions& options, const Gradient& gradient);

/**
 * Updates a parameter; `step` counts from 1, and `first` means that its momentum buffer is new. Errors are those of
 * check_rule_operands() (apply_rule.h) and of check_takes_gradient().
 */
TERCEL_API void update_by_group_rule(GroupRule rule, const GroupOptions& options, double step, bool first,
                                     const Tensor& parameter, Span<Tensor> states, const Gradient& gradient);

/**
 * The same for many parameters, each with a dense gradient, its states in a row ([parameter][state]) and, except for
 * SGD and Ftrl, a one-element tensor that counts its steps and is incremented. Everything is checked before anything
 * changes.
 */
TERCEL_API void update_by_group_rule(GroupRule rule, const GroupOptions& options, bool first, Span<Tensor> parameters,
                                     Span<Tensor> gradients, Span<Tensor> states, Span<Tensor> steps);

}  // namespace tercel::optim
