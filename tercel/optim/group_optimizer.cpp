#include "tercel/optim/group_optimizer.h"

#include <algorithm>
#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/vector_norms.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/optim/apply_rule.h"

namespace tercel::optim {

GroupOptimizer::~GroupOptimizer() = default;

GroupOptimizer::GroupOptimizer(GroupRule rule, std::vector<ParameterGroup> groups) : rule_(rule) {
  TERCEL_CHECK(!groups.empty(), ValueError, "optimizer got an empty parameter list");
  for (ParameterGroup& group : groups) add_param_group(std::move(group));
}

void GroupOptimizer::add_param_group(ParameterGroup group) {
  group.options = with_defaults(rule_, group.options);
  check_group_options(group.options);
  for (const Tensor& p : group.parameters) {
    check_defined(group_rule_name(rule_), p, "parameter");
    TERCEL_CHECK(p.is_leaf(), ValueError, "can't optimize a non-leaf Tensor");
    int64_t times = std::count_if(group.parameters.begin(), group.parameters.end(),
                                  [&](const Tensor& other) { return other.is_same(p); });
    for (const ParameterGroup& other : groups_)
      for (const Tensor& q : other.parameters) times += q.is_same(p) ? 1 : 0;
    TERCEL_CHECK(times == 1, ValueError, "some parameters appear in more than one parameter group");
  }
  states_.resize(states_.size() + group.parameters.size());
  groups_.push_back(std::move(group));
}

void GroupOptimizer::zero_grad() {
  for (const ParameterGroup& group : groups_)
    for (const Tensor& p : group.parameters) clear_gradient(p);
}

void GroupOptimizer::step() {
  const NoGradGuard no_grad;
  // Before the first parameter is updated.
  for (const ParameterGroup& group : groups_)
    for (const Tensor& p : group.parameters) {
      check_takes_gradient(rule_, group.options, gradient_of(p));
      if (const Gradient gradient = to_rows(gradient_of(p)); gradient.is_rows())
        check_row_range(group_rule_name(rule_), gradient.rows, p);
    }
  size_t index = 0;
  for (const ParameterGroup& group : groups_)
    for (const Tensor& p : group.parameters) {
      State& state = states_[index++];
      const Gradient gradient = gradient_of(p);
      if (!gradient.defined()) continue;
      update(p, gradient, state, group.options);
    }
}

void GroupOptimizer::update(const Tensor& p, const Gradient& gradient, State& state, const GroupOptions& o) const {
  const bool first = state.tensors.empty();  // the buffer, if any, exists since the first step with momentum
  const Span<const char*> names = group_state_names(rule_, o);
  std::vector<Tensor> tensors;
  for (const char* name : names) {
    const auto found = state.tensors.find(name);
    tensors.push_back(found == state.tensors.end() ? full_like(p.detach(), group_state_start(rule_, o))
                                                   : found->second);
  }
  update_by_group_rule(rule_, o, state.step + 1, first, p, tensors, gradient);
  for (size_t i = 0; i < names.size(); ++i) state.tensors.emplace(names[i], tensors[i]);
  state.step += 1;
}

std::vector<std::pair<std::string, Tensor>> GroupOptimizer::state_dict() const {
  std::vector<std::pair<std::string, Tensor>> out;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].step == 0) continue;
    const std::string prefix = std::to_string(i) + ".";
    out.emplace_back(prefix + "step", scalar_tensor(states_[i].step, kFloat32));
    for (const auto& [key, tensor] : states_[i].tensors) out.emplace_back(prefix + key, tensor);
  }
  return out;
}

void GroupOptimizer::load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state) {
  const char* const name = group_rule_name(rule_);
  std::vector<Tensor> parameters;
  for (const ParameterGroup& group : groups_)
    parameters.insert(parameters.end(), group.parameters.begin(), group.parameters.end());
  std::vector<State> loaded(states_.size());
  for (const auto& [key, tensor] : state) {
    const size_t dot = key.find('.');
    size_t index = 0;
    bool number = dot != std::string::npos && dot > 0 && dot < 10;
    for (size_t i = 0; number && i < dot; ++i) {
      number = key[i] >= '0' && key[i] <= '9';
      index = index * 10 + static_cast<size_t>(key[i] - '0');
    }
    TERCEL_CHECK(number && index < loaded.size(), RuntimeError, name, ": the state '", key,
                 "' belongs to no parameter; there are ", loaded.size());
    const std::string rest = key.substr(dot + 1);
    if (rest == "step") {
      loaded[index].step = tensor.item<double>();
      continue;
    }
    TERCEL_CHECK(tensor.sizes() == parameters[index].sizes(), RuntimeError, name, ": the state '", key, "' is ",
                 tensor.sizes(), " but its parameter ", parameters[index].sizes());
    loaded[index].tensors[rest] = clone(tensor.detach());
  }
  states_ = std::move(loaded);
}

Tensor clip_grad_norm_(Span<Tensor> parameters, double max_norm, double norm_type, bool error_if_nonfinite) {
  const NoGradGuard no_grad;
  std::vector<Tensor> gradients, norms;
  for (const Tensor& p : parameters) {
    const Gradient g = gradient_of(p);
    TERCEL_CHECK(!g.is_rows(), RuntimeError, "clip_grad_norm_: ", describe(p),
                 " has a row gradient, which is not supported");
    if (!g.defined()) continue;
    gradients.push_back(g.values);
    norms.push_back(norm(g.values, norm_type));
  }
  if (gradients.empty()) return scalar_tensor(0.0, kFloat32);
  const Tensor total = norm(stack(norms), norm_type);
  const double value = total.item<double>();
  TERCEL_CHECK(!error_if_nonfinite || std::isfinite(value), RuntimeError, "The total norm of order ", norm_type,
               " for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error and "
               "scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`");
  const double factor = max_norm / (value + 1e-6);
  if (!(factor >= 1))
    for (const Tensor& g : gradients) mul_(g, factor);
  return total;
}

void clip_grad_value_(Span<Tensor> parameters, double clip_value) {
  const NoGradGuard no_grad;
  for (const Tensor& p : parameters) {
    const Gradient g = gradient_of(p);
    if (g.defined()) clamp_(g.values, -clip_value, clip_value);
  }
}

}  // namespace tercel::optim
