// Optimizers over groups of parameters, as in torch.optim: names, defaults and formulas are PyTorch's.
//
//   optim::Adam optimizer(net->parameters(), {.lr = 1e-3});
//   optimizer.zero_grad();
//   loss.backward();
//   optimizer.step();
//
// The trainer's Optimizer (optimizer.h) updates one arena or table by HugeCTR's formulas; this is for ordinary loops.
// Both run the rules of rules.h, one pass over the memory per parameter, and so do tercel.optim's classes.
// Parameters without a gradient are left alone. A gradient of rows is for SGD without momentum or weight decay, and for
// Adagrad without weight decay; others are a RuntimeError.
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

  /** Groups may be changed between steps, by a schedule for one. */
  std::vector<ParameterGroup>& param_groups() { return groups_; }
  /** ValueError for a parameter that is no leaf, or in a group already. */
  void add_param_group(ParameterGroup group);
  /** Forgets all gradients. */
  void zero_grad();
  /** One update of every parameter that has a gradient. */
  void step();

  /** "0.exp_avg": the states of parameter 0 (counted over all groups), and its "step" [], float32. */
  std::vector<std::pair<std::string, Tensor>> state_dict() const;
  /** Takes copies of the states; RuntimeError for a parameter, or sizes, that there are none of. */
  void load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state);

 protected:
  GroupOptimizer(GroupRule rule, std::vector<ParameterGroup> groups);

 private:
  /** What is kept for one parameter. */
  struct State {
    double step = 0;
    std::map<std::string, Tensor> tensors;
  };

  void update(const Tensor& p, const Gradient& gradient, State& state, const GroupOptions& o) const;

  GroupRule rule_;
  std::vector<ParameterGroup> groups_;
  std::vector<State> states_;  // in the order of the groups' parameters
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
/** Moving means of g and g^2, corrected for their start; weight decay is added to g. */
class TERCEL_API Adam final : public GroupOptimizer {
  TERCEL_GROUP_OPTIMIZER(Adam)
};
/** Adam whose weight decay shrinks the parameter itself. */
class TERCEL_API AdamW final : public GroupOptimizer {
  TERCEL_GROUP_OPTIMIZER(AdamW)
};
/** sum += g^2; p -= lr / (1 + (step - 1) lr_decay) g / (sqrt(sum) + eps). */
class TERCEL_API Adagrad final : public GroupOptimizer {
  TERCEL_GROUP_OPTIMIZER(Adagrad)
};
/** p -= lr g / (sqrt(moving mean of g^2) + eps), centred and with momentum if asked. */
class TERCEL_API RMSprop final : public GroupOptimizer {
  TERCEL_GROUP_OPTIMIZER(RMSprop)
};
/** Follow the regularized leader, as the trainer's: parameters whose sum of gradients is small are zero. */
class TERCEL_API Ftrl final : public GroupOptimizer {
  TERCEL_GROUP_OPTIMIZER(Ftrl)
};
#undef TERCEL_GROUP_OPTIMIZER

/**
 * Scales all gradients together so that their p-norm is at most max_norm; returns what it was. RuntimeError, if asked,
 * for one that is not finite. p is 1, 2 or infinity; gradients of rows are a RuntimeError.
 */
TERCEL_API Tensor clip_grad_norm_(Span<Tensor> parameters, double max_norm, double norm_type = 2,
                                  bool error_if_nonfinite = false);
/** Clamps every gradient to [-clip_value, clip_value]. */
TERCEL_API void clip_grad_value_(Span<Tensor> parameters, double clip_value);

}  // namespace tercel::optim
