#include "tercel/nn/module.h"

#include <algorithm>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/common/copy.h"

namespace tercel::nn {

namespace {

std::vector<Tensor> tensors_of(const NamedTensors& named) {
  std::vector<Tensor> out;
  for (const auto& [name, tensor] : named) out.push_back(tensor);
  return out;
}

// "a", "b".
std::string quoted(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += str_cat({out.empty() ? "" : ", ", "\"", name, "\""});
  return out;
}

const Tensor* find(const NamedTensors& state, const std::string& name) {
  for (const auto& [key, tensor] : state)
    if (key == name) return &tensor;
  return nullptr;
}

}  // namespace

Module::~Module() = default;

Tensor Module::forward(const Tensor& /*x*/) {
  throw_error<NotImplementedError>({"Module [", name(), "] is missing the required \"forward\" function"});
}

void Module::check_name(const char* what, const std::string& name) const {
  TERCEL_CHECK(!name.empty(), RuntimeError, what, " name can't be empty string \"\"");
  TERCEL_CHECK(name.find('.') == std::string::npos, RuntimeError, what, " name can't contain \".\", got: ", name);
  bool taken = find(parameters_, name) || find(buffers_, name);
  for (const auto& child : children_) taken = taken || child.first == name;
  TERCEL_CHECK(!taken, RuntimeError, "attribute '", name, "' already exists");
}

Tensor Module::register_parameter(std::string name, Tensor parameter) {
  check_name("parameter", name);
  if (parameter.defined()) {
    TERCEL_CHECK(parameter.is_leaf(), RuntimeError, "Cannot assign non-leaf Tensor to parameter '", name,
                 "'. Model parameters must be created explicitly.");
    parameter.requires_grad_();
  }
  parameters_.emplace_back(std::move(name), parameter);
  return parameter;
}

Tensor Module::register_buffer(std::string name, Tensor buffer) {
  check_name("buffer", name);
  buffers_.emplace_back(std::move(name), buffer);
  return buffer;
}

void Module::add_child(const std::string& name, std::shared_ptr<Module> child) {
  check_name("module", name);
  TERCEL_CHECK(child != nullptr, TypeError, "module '", name, "' is null");
  children_.emplace_back(name, std::move(child));
}

void Module::collect(const std::string& prefix, bool parameters, bool buffers, NamedTensors& out) const {
  const auto add = [&](const NamedTensors& named) {
    for (const auto& [name, tensor] : named)
      if (tensor.defined()) out.emplace_back(prefix + name, tensor);
  };
  if (parameters) add(parameters_);
  if (buffers) add(buffers_);
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", parameters, buffers, out);
}

NamedTensors Module::named_parameters() const {
  NamedTensors all, once;
  collect("", true, false, all);
  for (auto& entry : all) {
    const auto same = [&](const auto& other) { return other.second.is_same(entry.second); };
    if (std::none_of(once.begin(), once.end(), same)) once.push_back(std::move(entry));
  }
  return once;
}

NamedTensors Module::named_buffers() const {
  NamedTensors out;
  collect("", false, true, out);
  return out;
}

std::vector<Tensor> Module::parameters() const { return tensors_of(named_parameters()); }
std::vector<Tensor> Module::buffers() const { return tensors_of(named_buffers()); }

NamedTensors Module::state_dict() const {
  NamedTensors out;
  collect("", true, true, out);
  for (auto& entry : out) entry.second = entry.second.detach();
  return out;
}

void Module::apply(FunctionRef<void(Module&)> fn) {
  for (const auto& [name, child] : children_) child->apply(fn);
  fn(*this);
}

void Module::train(bool on) {
  apply([on](Module& m) { m.training_ = on; });
}

void Module::to(ScalarType dtype) {
  TERCEL_CHECK(is_floating(dtype), TypeError,
               "nn.Module.to only accepts floating point dtypes, but got desired dtype=", to_string(dtype));
  NamedTensors all;
  collect("", true, true, all);
  const NoGradGuard no_grad;
  for (auto& [name, tensor] : all) {
    if (!tensor.is_floating_point() || tensor.dtype() == dtype) continue;
    const Tensor converted = tercel::to(tensor.detach(), dtype);
    tensor.impl().shallow_copy_from(converted.impl());
    clear_gradient(tensor);
  }
}

void Module::zero_grad() {
  for (const Tensor& p : parameters()) clear_gradient(p);
}

void Module::requires_grad_(bool on) {
  for (Tensor p : parameters()) p.requires_grad_(on);
}

IncompatibleKeys Module::load_state_dict(const NamedTensors& state, bool strict) {
  NamedTensors own;
  collect("", true, true, own);
  IncompatibleKeys keys;
  std::string errors;
  for (const auto& [name, tensor] : own) {
    const Tensor* given = find(state, name);
    if (!given)
      keys.missing_keys.push_back(name);
    else if (given->sizes() != tensor.sizes())
      errors += str_cat({"\n\tsize mismatch for ", name, ": copying a param with shape ", given->sizes(),
                         " from checkpoint, the shape in current model is ", tensor.sizes(), "."});
  }
  for (const auto& [name, tensor] : state)
    if (!find(own, name)) keys.unexpected_keys.push_back(name);
  if (strict && !keys.missing_keys.empty())
    errors = str_cat({"\n\tMissing key(s) in state_dict: ", quoted(keys.missing_keys), ". ", errors});
  if (strict && !keys.unexpected_keys.empty())
    errors = str_cat({"\n\tUnexpected key(s) in state_dict: ", quoted(keys.unexpected_keys), ". ", errors});
  TERCEL_CHECK(errors.empty(), RuntimeError, "Error(s) in loading state_dict for ", name(), ":", errors);
  const NoGradGuard no_grad;
  for (const auto& [name, tensor] : own)
    if (const Tensor* given = find(state, name)) copy_(tensor, *given);
  return keys;
}

void Sequential::push_back(std::shared_ptr<Module> module) {
  register_module(std::to_string(size()), std::move(module));
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor out = x;
  for (const auto& [name, child] : named_children()) out = child->forward(out);
  return out;
}

void ModuleList::push_back(std::shared_ptr<Module> module) {
  register_module(std::to_string(size()), std::move(module));
}

const std::shared_ptr<Module>& ModuleList::operator[](size_t i) const {
  TERCEL_CHECK(i < size(), IndexError, "ModuleList: index ", i, " is out of range for ", size(), " modules");
  return named_children()[i].second;
}

bool ModuleDict::contains(const std::string& key) const {
  for (const auto& [name, child] : named_children())
    if (name == key) return true;
  return false;
}

const std::shared_ptr<Module>& ModuleDict::operator[](const std::string& key) const {
  for (const auto& [name, child] : named_children())
    if (name == key) return child;
  throw_error<IndexError>({"ModuleDict: no module is named '", key, "'"});
}

const Tensor& ParameterList::operator[](size_t i) const {
  TERCEL_CHECK(i < size(), IndexError, "ParameterList: index ", i, " is out of range for ", size(), " parameters");
  return own_parameters()[i].second;
}

bool ParameterDict::contains(const std::string& key) const {
  for (const auto& [name, parameter] : own_parameters())
    if (name == key) return true;
  return false;
}

const Tensor& ParameterDict::operator[](const std::string& key) const {
  for (const auto& [name, parameter] : own_parameters())
    if (name == key) return parameter;
  throw_error<IndexError>({"ParameterDict: no parameter is named '", key, "'"});
}

}  // namespace tercel::nn
