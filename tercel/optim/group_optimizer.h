// Optimizers over groups of parameters, as in torch.optim: names, defaults and formulas are PyTorch's.
//
//   optim::Adam optimizer(net->parameters(), {.lr = 1e-3});
//   optimizer.zero_grad();
//   loss.backward();
//   optimizer.step();
//
// The trainer's Optimizer (optimizer.h) updates one arena or table by HugeCTR's formulas; this is for ordinary training
// loops. Both use the rules of rules.h, with one pass over memory per parameter, and so do the classes of tercel.optim.
// Parameters without a gradient are skipped. Row gradients are supported by SGD without momentum and weight decay, and
// by Adagrad without weight decay; others raise RuntimeError.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/optim/group_rules.h"

namespace tercel::optim {

struct ParameterGroup {
  std::vector<Tensor> parameters;
  GroupOptions options;
};

class TERCEL_API GroupOptimizer {
 public:
  virtual ~GroupOptimizer();
  GroupOptimizer(const GroupOptimizer&) = delete;
  GroupOptimizer& operator=(const GroupOptimizer&) = delete;

  /** Groups may be changed between steps, for example by a schedule. */
  std::vector<ParameterGroup>& param_groups() { return groups_; }
  /** ValueError for a parameter that is not a leaf, or is already in a group. */
  void add_param_group(ParameterGroup group);
  /** Clears all gradients. */
  void zero_grad();
  /** One update of every parameter that has a gradient. */
  void step();

  /** The states of parameter 0 (counted over all groups) are named like "0.exp_avg"; its "step" is a float32 scalar. */
  std::vector<std::pair<std::string, Tensor>> state_dict() const;
  /** Copies the given states; RuntimeError for an unknown parameter or different sizes. */
  void load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state);

 protected:
  GroupOptimizer(GroupRule rule, std::vector<ParameterGroup> groups);

 private:
  /** States of one parameter. */
  struct State {
    double step = 0;
    std::map<std::string, Tensor> tensors;
  };

  void update(const Tensor& p, const Gradient& gradient, State& state, const GroupOptions& o) const;

  GroupRule rule_;
  std::vector<ParameterGroup> groups_;
  std::vector<State> states_;  // in the order of parameters in the groups
};

/** Declares an optimizer; the second constructor makes one group. */
#define TERCEL_GROUP_OPTIMIZER(Name)                                                                        \
 public:                                                                                                    \
  explicit Name(std::vector<ParameterGroup> groups) : GroupOptimizer(GroupRule::Name, std::move(groups)) {} \
  explicit Name(std::vector<Tensor> parameters, GroupOptions options = {})                                  \
      : GroupOptimizer(GroupRule::Name, {{std::move(parameters), options}}) {}

/** buf = momentum buf + (1 - dampening) g; p -= lr buf (or, with nesterov, lr (g + momentum buf)). */
class TERCEL_API SGD final : public GroupOptimizer {
  TERCEL_GROUP_OPTIMIZER(SGD)
};
/** Adam: moving averages of g and g^2 with bias correction; weight decay is added to g. */
class TERCEL_API Adam final : public GroupOptimizer {
  TERCEL_GROUP_OPTIMIZER(Adam)
};
/** Adam with decoupled weight decay, which shrinks the parameter directly. */
class TERCEL_API AdamW final : public GroupOptimizer {
  TERCEL_GROUP_OPTIMIZER(AdamW)
};
/** sum += g^2; p -= lr / (1 + (step - 1) lr_decay) g / (sqrt(sum) + eps). */
class TERCEL_API Adagrad final : public GroupOptimizer {
  TERCEL_GROUP_OPTIMIZER(Adagrad)
};
/** p -= lr g / (sqrt(moving average of g^2) + eps); optionally centred and with momentum. */
class TERCEL_API RMSprop final : public GroupOptimizer {
  TERCEL_GROUP_OPTIMIZER(RMSprop)
};
/** Follow the regularized leader, as in the trainer: parameters with a small sum of gradients are zero. */
class TERCEL_API Ftrl final : public GroupOptimizer {
  TERCEL_GROUP_OPTIMIZER(Ftrl)
};
#undef TERCEL_GROUP_OPTIMIZER

/**
 * Scales all gradients by a common factor so that their total p-norm is at most max_norm; returns the norm before.
 * RuntimeError, if requested, for a norm that is not finite. p is 1, 2 or infinity; RuntimeError for row gradients.
 */
TERCEL_API Tensor clip_grad_norm_(Span<Tensor> parameters, double max_norm, double norm_type = 2,
                                  bool error_if_nonfinite = false);
/** Clamps every gradient to [-clip_value, clip_value]. */
TERCEL_API void clip_grad_value_(Span<Tensor> parameters, double clip_value);

}  // namespace tercel::optim
