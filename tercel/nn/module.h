// Modules: functions with parameters, buffers and children, as in torch.nn.
//
// A module registers its parameters, buffers and children by name; functions that work on all of them (zeroing
// gradients, dtypes, state dicts) are here. Parameters are handles: a member of a layer and the tensor that
// register_parameter() keeps are the same, which may be a view of a ParameterArena.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/util/function_ref.h"

namespace tercel::nn {

/** Names and tensors in the order of registration; children's names begin with the child's, "0.weight". */
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/** Names that load_state_dict() found on one side only. */
struct IncompatibleKeys {
  std::vector<std::string> missing_keys, unexpected_keys;
};

class TERCEL_API Module {
 public:
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /** Applies the module; NotImplementedError for a module that is not a function of one tensor. */
  virtual Tensor forward(const Tensor& x);
  Tensor operator()(const Tensor& x) { return forward(x); }
  /** Name in errors, "Linear". */
  virtual const char* name() const { return "Module"; }

  /** Those of this module, then those of its children. A tensor that is registered twice is listed once. */
  std::vector<Tensor> parameters() const;
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::vector<Tensor> buffers() const;
  /** Direct children; the caller shares them with this module. */
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& named_children() const { return children_; }

  /** Calls fn for every module below this one, then for this one. */
  void apply(FunctionRef<void(Module&)> fn);
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  /** Converts floating parameters and buffers in place: other handles see the change. */
  void to(ScalarType dtype);
  /** Removes the parameters' gradients. */
  void zero_grad();
  void requires_grad_(bool on = true);

  /** Parameters and buffers, sharing their memory. */
  NamedTensors state_dict() const;
  /**
   * Copies a state dict into the module. RuntimeError, before anything is changed, for different sizes and, if strict,
   * for missing or unknown names.
   */
  IncompatibleKeys load_state_dict(const NamedTensors& state, bool strict = true);

 protected:
  Module() = default;
  /** Makes the tensor a parameter that requires a gradient; an undefined one is a parameter that the module lacks. */
  Tensor register_parameter(std::string name, Tensor parameter);
  /** Registers a tensor that is part of the state but has no gradient. */
  Tensor register_buffer(std::string name, Tensor buffer);
  /** The parameters registered in this module, in order, without its children's. */
  const NamedTensors& own_parameters() const { return parameters_; }
  /** Parent and caller share ownership of the child. */
  template <class M>
  std::shared_ptr<M> register_module(const std::string& name, std::shared_ptr<M> child) {
    add_child(name, child);
    return child;
  }

 private:
  void check_name(const char* what, const std::string& name) const;
  void add_child(const std::string& name, std::shared_ptr<Module> child);
  void collect(const std::string& prefix, bool parameters, bool buffers, NamedTensors& out) const;

  NamedTensors parameters_, buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  bool training_ = true;
};

/** Modules applied in sequence, named "0", "1" and so on. */
class TERCEL_API Sequential final : public Module {
 public:
  Sequential() = default;
  template <class... M>
  explicit Sequential(std::shared_ptr<M>... modules) {
    (push_back(std::move(modules)), ...);
  }
  void push_back(std::shared_ptr<Module> module);
  size_t size() const { return named_children().size(); }

  Tensor forward(const Tensor& x) override;
  const char* name() const override { return "Sequential"; }
};

/** A list of modules named "0", "1" and so on; not callable itself. */
class TERCEL_API ModuleList final : public Module {
 public:
  ModuleList() = default;
  template <class... M>
  explicit ModuleList(std::shared_ptr<M>... modules) {
    (push_back(std::move(modules)), ...);
  }
  void push_back(std::shared_ptr<Module> module);
  size_t size() const { return named_children().size(); }
  /** IndexError unless i is below size(). */
  const std::shared_ptr<Module>& operator[](size_t i) const;
  const char* name() const override { return "ModuleList"; }
};

/** Modules by name; not callable itself. */
class TERCEL_API ModuleDict final : public Module {
 public:
  ModuleDict() = default;
  explicit ModuleDict(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    for (const auto& [key, module] : modules) insert(key, module);
  }
  void insert(const std::string& key, std::shared_ptr<Module> module) { register_module(key, std::move(module)); }
  size_t size() const { return named_children().size(); }
  bool contains(const std::string& key) const;
  /** IndexError for an unknown name. */
  const std::shared_ptr<Module>& operator[](const std::string& key) const;
  const char* name() const override { return "ModuleDict"; }
};

/** Parameters named "0", "1" and so on; not callable itself. */
class TERCEL_API ParameterList final : public Module {
 public:
  ParameterList() = default;
  explicit ParameterList(Span<Tensor> parameters) {
    for (const Tensor& p : parameters) append(p);
  }
  void append(Tensor parameter) { register_parameter(std::to_string(size()), std::move(parameter)); }
  size_t size() const { return own_parameters().size(); }
  /** IndexError unless i is below size(). */
  const Tensor& operator[](size_t i) const;
  const char* name() const override { return "ParameterList"; }
};

/** Parameters by name; not callable itself. */
class TERCEL_API ParameterDict final : public Module {
 public:
  ParameterDict() = default;
  explicit ParameterDict(const NamedTensors& parameters) {
    for (const auto& [key, parameter] : parameters) insert(key, parameter);
  }
  void insert(const std::string& key, Tensor parameter) { register_parameter(key, std::move(parameter)); }
  size_t size() const { return own_parameters().size(); }
  bool contains(const std::string& key) const;
  /** IndexError for an unknown name. */
  const Tensor& operator[](const std::string& key) const;
  const char* name() const override { return "ParameterDict"; }
};

}  // namespace tercel::nn
