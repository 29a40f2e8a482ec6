#include "tercel/optim/group_optimizer.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/embedding/row_gradient.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/vector_norms.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel::optim {

namespace {

/** The options with torch.optim's defaults for what was left to the optimizer. */
GroupOptions resolved(std::string_view optimizer, GroupOptions o) {
  const bool adagrad = optimizer == "Adagrad";
  const auto set = [](double& value, double otherwise) {
    if (value == GroupOptions::kOwnDefault) value = otherwise;
  };
  set(o.lr, adagrad || optimizer == "RMSprop" ? 0.01 : 1e-3);
  set(o.weight_decay, optimizer == "AdamW" ? 0.01 : 0);
  set(o.eps, adagrad ? 1e-10 : 1e-8);
  return o;
}

}  // namespace

GroupOptimizer::~GroupOptimizer() = default;

GroupOptimizer::GroupOptimizer(const char* name, std::vector<ParameterGroup> groups) : name_(name) {
  TERCEL_CHECK(!groups.empty(), ValueError, "optimizer got an empty parameter list");
  for (ParameterGroup& group : groups) add_param_group(std::move(group));
}

void GroupOptimizer::check(const GroupOptions& o) const {
  const auto refuse = [](bool good, const char* what, double value) {
    TERCEL_CHECK(good, ValueError, "Invalid ", what, " value: ", value);
  };
  TERCEL_CHECK(o.lr >= 0, ValueError, "Invalid learning rate: ", o.lr);
  refuse(o.weight_decay >= 0, "weight_decay", o.weight_decay);
  refuse(o.momentum >= 0, "momentum", o.momentum);
  refuse(o.eps >= 0, "epsilon", o.eps);
  TERCEL_CHECK(o.beta1 >= 0 && o.beta1 < 1, ValueError, "Invalid beta parameter at index 0: ", o.beta1);
  TERCEL_CHECK(o.beta2 >= 0 && o.beta2 < 1, ValueError, "Invalid beta parameter at index 1: ", o.beta2);
  TERCEL_CHECK(!o.nesterov || (o.momentum > 0 && o.dampening == 0), ValueError,
               "Nesterov momentum requires a momentum and zero dampening");
}

void GroupOptimizer::add_param_group(ParameterGroup group) {
  group.options = resolved(name_, group.options);
  check(group.options);
  for (const Tensor& p : group.parameters) {
    check_defined(name_, p, "parameter");
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
  size_t index = 0;
  for (const ParameterGroup& group : groups_)
    for (const Tensor& p : group.parameters) {
      State& state = states_[index++];
      const Gradient gradient = gradient_of(p);
      if (!gradient.defined()) continue;
      state.step += 1;
      const Tensor data = p.detach();
      if (gradient.is_rows()) {
        UniqueRows unique;
        const Gradient once = unique.reduce(gradient);
        update_rows(data, once.rows, group.options.maximize ? neg(once.values) : once.values, state, group.options);
      } else {
        update(data, group.options.maximize ? neg(gradient.values) : gradient.values, state, group.options);
      }
    }
}

void GroupOptimizer::update_rows(const Tensor& /*p*/, const Tensor& /*rows*/, const Tensor& /*values*/,
                                 State& /*state*/, const GroupOptions& /*o*/) {
  throw_error<RuntimeError>({name_, " does not support sparse gradients"});
}

const Tensor& GroupOptimizer::State::get(const char* tensor_name, const Tensor& parameter, double value) {
  Tensor& tensor = tensors[tensor_name];
  if (!tensor.defined()) tensor = full_like(parameter, value);
  return tensor;
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
    TERCEL_CHECK(number && index < loaded.size(), RuntimeError, name_, ": the state '", key,
                 "' belongs to no parameter; there are ", loaded.size());
    const std::string rest = key.substr(dot + 1);
    if (rest == "step") {
      loaded[index].step = tensor.item<double>();
      continue;
    }
    TERCEL_CHECK(tensor.sizes() == parameters[index].sizes(), RuntimeError, name_, ": the state '", key, "' is ",
                 tensor.sizes(), " but its parameter ", parameters[index].sizes());
    loaded[index].tensors[rest] = clone(tensor.detach());
  }
  states_ = std::move(loaded);
}

namespace {

Tensor decayed(const Tensor& p, const Tensor& g, const GroupOptions& o) {
  return o.weight_decay == 0 ? g : add(g, p, o.weight_decay);
}

void check_plain_rows(const char* name, bool plain) {
  TERCEL_CHECK(plain, RuntimeError, name, ": gradients of rows go with neither weight_decay nor momentum");
}

// p[rows] += values, each row named once.
void add_rows(const Tensor& p, const Tensor& rows, const Tensor& values) {
  for (int64_t i = 0; i < rows.numel(); ++i) add_(select(p, 0, rows.data<int64_t>()[i]), select(values, 0, i));
}

// p -= lr m / (sqrt(v) + eps), with both moments corrected.
void adam_step(const Tensor& p, const Tensor& g, const Tensor& m, const Tensor& v, const Tensor& largest, double step,
               const GroupOptions& o) {
  lerp_(m, g, 1 - o.beta1);
  mul_(v, o.beta2);
  addcmul_(v, g, g, 1 - o.beta2);
  if (largest.defined()) maximum_out(largest, largest, v);
  const double first = 1 - std::pow(o.beta1, step), second = std::sqrt(1 - std::pow(o.beta2, step));
  const Tensor root = sqrt(largest.defined() ? largest : v);
  div_(root, second);
  add_(root, o.eps);
  addcdiv_(p, m, root, -o.lr / first);
}

}  // namespace

void SGD::update(const Tensor& p, const Tensor& gradient, State& state, const GroupOptions& o) {
  Tensor g = decayed(p, gradient, o);
  if (o.momentum != 0) {
    const bool first = state.tensors.count("momentum_buffer") == 0;
    const Tensor& buffer = state.get("momentum_buffer", p);
    if (first) {
      copy_(buffer, g);
    } else {
      mul_(buffer, o.momentum);
      add_(buffer, g, 1 - o.dampening);
    }
    g = o.nesterov ? add(g, buffer, o.momentum) : buffer;
  }
  add_(p, g, -o.lr);
}

void SGD::update_rows(const Tensor& p, const Tensor& rows, const Tensor& values, State& /*state*/,
                      const GroupOptions& o) {
  check_plain_rows(name(), o.weight_decay == 0 && o.momentum == 0);
  add_rows(p, rows, mul(values, -o.lr));
}

void Adam::update(const Tensor& p, const Tensor& gradient, State& state, const GroupOptions& o) {
  const Tensor largest = o.amsgrad ? state.get("max_exp_avg_sq", p) : Tensor();
  adam_step(p, decayed(p, gradient, o), state.get("exp_avg", p), state.get("exp_avg_sq", p), largest, state.step, o);
}

void AdamW::update(const Tensor& p, const Tensor& gradient, State& state, const GroupOptions& o) {
  if (o.weight_decay != 0) mul_(p, 1 - o.lr * o.weight_decay);
  const Tensor largest = o.amsgrad ? state.get("max_exp_avg_sq", p) : Tensor();
  adam_step(p, gradient, state.get("exp_avg", p), state.get("exp_avg_sq", p), largest, state.step, o);
}

void Adagrad::update(const Tensor& p, const Tensor& gradient, State& state, const GroupOptions& o) {
  const Tensor g = decayed(p, gradient, o);
  const Tensor& total = state.get("sum", p, o.initial_accumulator_value);
  addcmul_(total, g, g);
  const Tensor root = sqrt(total);
  add_(root, o.eps);
  addcdiv_(p, g, root, -o.lr / (1 + (state.step - 1) * o.lr_decay));
}

void Adagrad::update_rows(const Tensor& p, const Tensor& rows, const Tensor& values, State& state,
                          const GroupOptions& o) {
  check_plain_rows(name(), o.weight_decay == 0);
  const Tensor& total = state.get("sum", p, o.initial_accumulator_value);
  add_rows(total, rows, square(values));
  const Tensor root = sqrt(index_select(total, 0, rows));
  add_(root, o.eps);
  add_rows(p, rows, mul(div(values, root), -o.lr / (1 + (state.step - 1) * o.lr_decay)));
}

void RMSprop::update(const Tensor& p, const Tensor& gradient, State& state, const GroupOptions& o) {
  const Tensor g = decayed(p, gradient, o);
  const Tensor& squares = state.get("square_avg", p);
  mul_(squares, o.alpha);
  addcmul_(squares, g, g, 1 - o.alpha);
  Tensor root;
  if (o.centered) {
    const Tensor& means = state.get("grad_avg", p);
    lerp_(means, g, 1 - o.alpha);
    root = sqrt(addcmul(squares, means, means, -1));
  } else {
    root = sqrt(squares);
  }
  add_(root, o.eps);
  if (o.momentum == 0) {
    addcdiv_(p, g, root, -o.lr);
    return;
  }
  const Tensor& buffer = state.get("momentum_buffer", p);
  mul_(buffer, o.momentum);
  addcdiv_(buffer, g, root);
  add_(p, buffer, -o.lr);
}

Tensor clip_grad_norm_(Span<Tensor> parameters, double max_norm, double norm_type, bool error_if_nonfinite) {
  const NoGradGuard no_grad;
  std::vector<Tensor> gradients, norms;
  for (const Tensor& p : parameters) {
    const Gradient g = gradient_of(p);
    TERCEL_CHECK(!g.is_rows(), RuntimeError, "clip_grad_norm_: the gradient of ", describe(p), " is one of rows");
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
