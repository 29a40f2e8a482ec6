#include "tercel/optim/group_rules.h"

#include <cmath>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/embedding/row_gradient.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/optim/apply_rule.h"
#include "tercel/util/profile.h"

namespace tercel::optim {

namespace {

constexpr const char* kNames[] = {"SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Ftrl"};

constexpr const char* kMomentum[] = {"momentum_buffer"};
constexpr const char* kMoments[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
constexpr const char* kSum[] = {"sum"};
constexpr const char* kSquares[] = {"square_avg", "momentum_buffer"};
constexpr const char* kCentredSquares[] = {"square_avg", "grad_avg", "momentum_buffer"};
constexpr const char* kFtrl[] = {"n", "z"};

// 1 / lr would overflow float; see optimizer.cpp.
constexpr double kLeastFtrlRate = 1e-30;

bool nothing_to_do(GroupRule rule, const GroupOptions& o) { return rule == GroupRule::Ftrl && o.lr < kLeastFtrlRate; }

bool counts_steps(GroupRule rule) { return rule != GroupRule::SGD && rule != GroupRule::Ftrl; }

RuleId rule_id(GroupRule rule, const GroupOptions& o) {
  switch (rule) {
    case GroupRule::SGD: return o.momentum == 0 ? RuleId::Sgd : o.nesterov ? RuleId::Nesterov : RuleId::Momentum;
    case GroupRule::Adam:
    case GroupRule::AdamW: return o.amsgrad ? RuleId::AdamAmsgrad : RuleId::Adam;
    case GroupRule::Adagrad: return RuleId::AdaGrad;
    case GroupRule::RMSprop:
      if (o.momentum == 0) return o.centered ? RuleId::RmsPropCentered : RuleId::RmsProp;
      return o.centered ? RuleId::RmsPropCenteredMomentum : RuleId::RmsPropMomentum;
    case GroupRule::Ftrl: return RuleId::Ftrl;
  }
  return RuleId::Sgd;
}

/** The numbers of a step; rules.h says how HugeCTR's and PyTorch's differ. */
Step<double> numbers_of(GroupRule rule, const GroupOptions& o, double step, bool first) {
  Step<double> h;
  h.scale = o.maximize ? -1 : 1;
  if (rule == GroupRule::AdamW)
    h.shrink = 1 - o.lr * o.weight_decay;
  else if (rule != GroupRule::Ftrl)
    h.decay = o.weight_decay;
  h.rate = o.lr;
  h.epsilon = o.eps;
  switch (rule) {
    case GroupRule::SGD:
      h.beta1 = o.momentum;
      h.rest1 = first ? 1 : 1 - o.dampening;  // the buffer is initialised with the gradient
      break;
    case GroupRule::Adam:
    case GroupRule::AdamW: {
      const double root = std::sqrt(1 - std::pow(o.beta2, step));
      h.rate = o.lr * root / (1 - std::pow(o.beta1, step));
      h.epsilon = o.eps * root;
      h.beta1 = o.beta1;
      h.rest1 = 1 - o.beta1;
      h.beta2 = o.beta2;
      h.rest2 = 1 - o.beta2;
      break;
    }
    case GroupRule::Adagrad: h.rate = o.lr / (1 + (step - 1) * o.lr_decay); break;
    case GroupRule::RMSprop:
      h.beta1 = o.momentum;
      h.beta2 = o.alpha;
      h.rest2 = 1 - o.alpha;
      break;
    case GroupRule::Ftrl:
      h.inverse_rate = 1 / o.lr;
      h.beta = o.beta;
      h.lambda1 = o.lambda1;
      h.lambda2 = o.lambda2;
      break;
  }
  return h;
}

/** A COO gradient as rows, or, if several dimensions are sparse, strided. */
Gradient rows_or_dense(Gradient gradient) {
  Gradient out = to_rows(std::move(gradient));
  return out.is_coo() ? Gradient{to_dense(out.values), {}} : out;
}

void apply(const char* name, RuleId id, const Step<double>& numbers, const Tensor& parameter, Span<Tensor> states,
           const Gradient& gradient) {
  if (!gradient.is_rows()) {
    apply_rule(name, id, numbers, parameter, states, gradient);
    return;
  }
  UniqueRows unique;
  unique.reduce_in_blocks(gradient,
                          [&](const Gradient& rows) { apply_rule(name, id, numbers, parameter, states, rows); });
}

double value_of(const Tensor& step) {
  return step.dtype() == kFloat32 ? static_cast<double>(*step.data<float>()) : step.item<double>();
}

void set_value(const Tensor& step, double value) {
  if (step.dtype() != kFloat32) {
    fill_(step, value);
    return;
  }
  *step.data<float>() = static_cast<float>(value);
  step.impl().bump_version();
}

}  // namespace

const char* group_rule_name(GroupRule rule) { return kNames[static_cast<size_t>(rule)]; }

GroupOptions with_defaults(GroupRule rule, GroupOptions o) {
  const auto set = [](double& value, double otherwise) {
    if (value == GroupOptions::kOwnDefault) value = otherwise;
  };
  set(o.lr, rule == GroupRule::Adagrad || rule == GroupRule::RMSprop ? 0.01 : 1e-3);
  set(o.weight_decay, rule == GroupRule::AdamW ? 0.01 : 0);
  set(o.eps, rule == GroupRule::Adagrad ? 1e-10 : 1e-8);
  return o;
}

void check_group_options(const GroupOptions& o) {
  const auto refuse = [](bool good, const char* what, double value) {
    TERCEL_CHECK(good, ValueError, "Invalid ", what, " value: ", value);
  };
  TERCEL_CHECK(o.lr >= 0, ValueError, "Invalid learning rate: ", o.lr);
  refuse(o.weight_decay >= 0, "weight_decay", o.weight_decay);
  refuse(o.momentum >= 0, "momentum", o.momentum);
  refuse(o.eps >= 0, "epsilon", o.eps);
  TERCEL_CHECK(o.beta1 >= 0 && o.beta1 < 1, ValueError, "Invalid beta parameter at index 0: ", o.beta1);
  TERCEL_CHECK(o.beta2 >= 0 && o.beta2 < 1, ValueError, "Invalid beta parameter at index 1: ", o.beta2);
  refuse(o.beta >= 0, "beta", o.beta);
  refuse(o.lambda1 >= 0, "lambda1", o.lambda1);
  refuse(o.lambda2 >= 0, "lambda2", o.lambda2);
  TERCEL_CHECK(!o.nesterov || (o.momentum > 0 && o.dampening == 0), ValueError,
               "Nesterov momentum requires a momentum and zero dampening");
}

Span<const char*> group_state_names(GroupRule rule, const GroupOptions& o) {
  const auto n = static_cast<size_t>(num_states(rule_id(rule, o)));
  switch (rule) {
    case GroupRule::SGD: return {kMomentum, n};
    case GroupRule::Adam:
    case GroupRule::AdamW: return {kMoments, n};
    case GroupRule::Adagrad: return {kSum, n};
    case GroupRule::RMSprop: return {o.centered ? kCentredSquares : kSquares, n};
    case GroupRule::Ftrl: return {kFtrl, n};
  }
  return {};
}

double group_state_start(GroupRule rule, const GroupOptions& o) {
  return rule == GroupRule::Adagrad ? o.initial_accumulator_value : 0;
}

void check_takes_gradient(GroupRule rule, const GroupOptions& o, const Gradient& gradient) {
  if (gradient.is_strided()) return;
  const char* const name = group_rule_name(rule);
  TERCEL_CHECK(rule == GroupRule::SGD || rule == GroupRule::Adagrad, RuntimeError, name,
               " does not support sparse gradients",
               rule == GroupRule::Adam || rule == GroupRule::AdamW ? ", please consider SparseAdam instead" : "");
  TERCEL_CHECK(rule != GroupRule::Adagrad || o.weight_decay == 0, RuntimeError,
               "weight_decay option is not compatible with sparse gradients");
  TERCEL_CHECK(rule != GroupRule::SGD || (o.weight_decay == 0 && o.momentum == 0), RuntimeError, name,
               ": sparse gradients support neither weight_decay nor momentum");
}

void update_by_group_rule(GroupRule rule, const GroupOptions& o, double step, bool first, const Tensor& parameter,
                          Span<Tensor> states, const Gradient& given) {
  const Gradient gradient = rows_or_dense(given);
  const char* const name = group_rule_name(rule);
  const ProfileRange range(name, RangeKind::Op);
  const RuleId id = rule_id(rule, o);
  check_takes_gradient(rule, o, given);
  check_rule_operands(name, id, parameter, states, gradient);
  if (gradient.is_rows()) check_row_range(name, gradient.rows, parameter);  // before the first block is updated
  if (nothing_to_do(rule, o)) return;
  const Step<double> numbers = numbers_of(rule, o, step, first);
  apply(name, id, numbers, parameter, states, gradient);
}

void update_by_group_rule(GroupRule rule, const GroupOptions& o, bool first, Span<Tensor> parameters,
                          Span<Tensor> gradients, Span<Tensor> states, Span<Tensor> steps) {
  const char* const name = group_rule_name(rule);
  const ProfileRange range(name, RangeKind::Op);
  const RuleId id = rule_id(rule, o);
  const size_t n = parameters.size(), each = static_cast<size_t>(num_states(id));
  TERCEL_CHECK(gradients.size() == n && states.size() == n * each && steps.size() == (counts_steps(rule) ? n : 0),
               RuntimeError, name, ": expected as many gradients as parameters, ", n, ", ", each,
               " states for each and ", counts_steps(rule) ? "a step" : "no steps", ", got ", gradients.size(), ", ",
               states.size(), " and ", steps.size());
  for (const Tensor& step : steps)
    TERCEL_CHECK(step.defined() && step.numel() == 1, RuntimeError, name, ": expected a step of one element, got ",
                 describe(step));
  std::vector<Gradient> taken;
  for (size_t i = 0; i < n; ++i) {
    check_defined(name, gradients[i], "grads");
    taken.push_back(rows_or_dense({gradients[i], Tensor()}));
    check_takes_gradient(rule, o, {gradients[i], Tensor()});
    check_rule_operands(name, id, parameters[i], states.subspan(i * each, each), taken[i]);
    if (taken[i].is_rows()) check_row_range(name, taken[i].rows, parameters[i]);
  }
  if (nothing_to_do(rule, o)) return;
  Step<double> numbers = numbers_of(rule, o, 1, first);
  double last = 1;
  for (size_t i = 0; i < n; ++i) {
    if (!steps.empty()) {
      const double step = value_of(steps[i]) + 1;
      set_value(steps[i], step);
      if (step != last) numbers = numbers_of(rule, o, last = step, first);  // most parameters have the same step
    }
    apply(name, id, numbers, parameters[i], states.subspan(i * each, each), taken[i]);
  }
}

}  // namespace tercel::optim
