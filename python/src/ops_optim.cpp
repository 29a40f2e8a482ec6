// Steps of tercel.optim's optimizers: one call for a group of parameters.
#include "python/src/op.h"
#include "tercel/optim/group_rules.h"

namespace tercel::python {

namespace {

using List = const std::vector<Tensor>&;
using optim::GroupOptions;
using optim::GroupRule;

/** `states` holds a list for each state of the rule. */
void step(GroupRule rule, const GroupOptions& options, bool first, List params, List grads,
          std::initializer_list<const std::vector<Tensor>*> states, List steps) {
  const WithoutGil scope(work_of(params) >= kGilGrain);
  std::vector<Tensor> rows;
  rows.reserve(params.size() * states.size());
  for (size_t i = 0; i < params.size(); ++i)
    for (const std::vector<Tensor>* state : states) {
      if (state->empty()) continue;  // a state that these options do not use
      TERCEL_CHECK(state->size() == params.size(), RuntimeError, optim::group_rule_name(rule),
                   ": expected a state for ", "each of ", params.size(), " parameters, got ", state->size());
      rows.push_back((*state)[i]);
    }
  optim::update_by_group_rule(rule, with_defaults(rule, options), first, params, grads, rows, steps);
}

#define TERCEL_GROUP "Tensor[] params, Tensor[] grads, "

}  // namespace

Span<Entry> optim_ops() {
  static const Entry table[] = {
      entry(
          "_sgd_step(" TERCEL_GROUP
          "Tensor[] momentum_buffers, float lr, float momentum, float dampening, float weight_decay, bool nesterov, "
          "bool maximize, bool first)",
          [](List params, List grads, List buffers, double lr, double momentum, double dampening, double decay,
             bool nesterov, bool maximize, bool first) {
            const GroupOptions options{.lr = lr,
                                       .weight_decay = decay,
                                       .momentum = momentum,
                                       .dampening = dampening,
                                       .nesterov = nesterov,
                                       .maximize = maximize};
            step(GroupRule::SGD, options, first, params, grads, {&buffers}, {});
          },
          kFunction | kCoo, "A step of SGD; `first`: the buffers are new."),
      entry(
          "_adam_step(" TERCEL_GROUP
          "Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, Tensor[] state_steps, float lr, "
          "float beta1, float beta2, float weight_decay, float eps, bool decoupled, bool maximize)",
          [](List params, List grads, List means, List squares, List largest, List steps, double lr, double beta1,
             double beta2, double decay, double eps, bool decoupled, bool maximize) {
            const GroupOptions options{.lr = lr,
                                       .weight_decay = decay,
                                       .maximize = maximize,
                                       .beta1 = beta1,
                                       .beta2 = beta2,
                                       .eps = eps,
                                       .amsgrad = !largest.empty()};
            step(decoupled ? GroupRule::AdamW : GroupRule::Adam, options, false, params, grads,
                 {&means, &squares, &largest}, steps);
          },
          kFunction | kCoo, "A step of Adam, or of AdamW if decay is decoupled; increments state_steps."),
      entry(
          "_adagrad_step(" TERCEL_GROUP
          "Tensor[] state_sums, Tensor[] state_steps, float lr, float lr_decay, float weight_decay, float eps, "
          "bool maximize)",
          [](List params, List grads, List sums, List steps, double lr, double lr_decay, double decay, double eps,
             bool maximize) {
            const GroupOptions options{
                .lr = lr, .weight_decay = decay, .maximize = maximize, .eps = eps, .lr_decay = lr_decay};
            step(GroupRule::Adagrad, options, false, params, grads, {&sums}, steps);
          },
          kFunction | kCoo, "A step of Adagrad; increments state_steps."),
      entry(
          "_rmsprop_step(" TERCEL_GROUP
          "Tensor[] square_avgs, Tensor[] grad_avgs, Tensor[] momentum_buffers, Tensor[] state_steps, float lr, "
          "float alpha, float eps, float weight_decay, float momentum, bool centered, bool maximize)",
          [](List params, List grads, List squares, List means, List buffers, List steps, double lr, double alpha,
             double eps, double decay, double momentum, bool centered, bool maximize) {
            const GroupOptions options{.lr = lr,
                                       .weight_decay = decay,
                                       .momentum = momentum,
                                       .maximize = maximize,
                                       .eps = eps,
                                       .alpha = alpha,
                                       .centered = centered};
            step(GroupRule::RMSprop, options, false, params, grads, {&squares, &means, &buffers}, steps);
          },
          kFunction | kCoo, "A step of RMSprop; increments state_steps."),
      entry(
          "_ftrl_step(" TERCEL_GROUP
          "Tensor[] n, Tensor[] z, float lr, float beta, float lambda1, float lambda2, bool maximize)",
          [](List params, List grads, List n, List z, double lr, double beta, double lambda1, double lambda2,
             bool maximize) {
            const GroupOptions options{
                .lr = lr, .maximize = maximize, .beta = beta, .lambda1 = lambda1, .lambda2 = lambda2};
            step(GroupRule::Ftrl, options, false, params, grads, {&n, &z}, {});
          },
          kFunction | kCoo, "A step of the trainer's Ftrl."),
  };
  return table;
}

}  // namespace tercel::python
