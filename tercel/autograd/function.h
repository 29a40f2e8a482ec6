// User-defined ops with their own backward.
//
//   struct Cube : Function<Cube> {
//     static Tensor forward(FunctionContext& ctx, const Tensor& x) {
//       ctx.save_for_backward({x});
//       return x * x * x;
//     }
//     static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads) {
//       const Tensor x = ctx.saved_tensors()[0];
//       return {grads[0] * 3 * x * x};
//     }
//   };
//   const Tensor y = Cube::apply(x);
#pragma once

#include <any>
#include <string>
#include <type_traits>
#include <vector>

#include "tercel/autograd/grad_mode.h"
#include "tercel/autograd/node.h"
#include "tercel/autograd/saved_tensor.h"
#include "tercel/core/tensor_meta.h"

namespace tercel {

class CustomNode;

/** State shared by forward() and backward(). Values that are not tensors go into `data`. */
class TERCEL_API FunctionContext {
 public:
  /** Saves inputs or outputs of forward() for backward(); may be called once, with no other tensors. */
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  /** The saved tensors, in backward(). RuntimeError if one was changed in place, or if the graph was freed. */
  std::vector<Tensor> saved_tensors() const;
  /** Declares the inputs that forward() changed in place; it must return them too. */
  void mark_dirty(std::vector<Tensor> inputs) { dirty_ = std::move(inputs); }
  /** Declares outputs that have no gradient. */
  void mark_non_differentiable(std::vector<Tensor> outputs) { non_differentiable_ = std::move(outputs); }
  /** Whether backward() gets zeros (default) or undefined tensors for outputs without a gradient. */
  void set_materialize_grads(bool materialize) { materialize_grads_ = materialize; }
  /** Whether the i-th tensor argument of forward() needs a gradient. */
  bool needs_input_grad(size_t i) const { return i < needs_input_grad_.size() && needs_input_grad_[i] != 0; }
  /** backward() then runs with gradients off, and differentiating its results is an error. */
  void set_once_differentiable(bool once) { once_differentiable_ = once; }

  /** Arbitrary data from forward() for backward(). */
  std::any data;

 private:
  friend class CustomNode;
  std::vector<Tensor> to_save_, dirty_, non_differentiable_;
  std::vector<uint8_t> needs_input_grad_;
  bool materialize_grads_ = true;
  bool once_differentiable_ = false;
  // While backward() runs.
  const BackwardCall* call_ = nullptr;
  const CustomNode* node_ = nullptr;
};

/** Base class of nodes of user-defined ops, for Function and for language bindings. */
class TERCEL_API CustomNode : public Node {
 public:
  CustomNode(std::string name, Span<Tensor> inputs);

  FunctionContext& context() { return context_; }
  /** The saved tensors, also outside of backward(). RuntimeError if they were changed in place or freed. */
  std::vector<Tensor> saved_tensors() const;
  /** Computes the inputs' gradients (undefined: none) from those of the outputs. */
  virtual std::vector<Tensor> backward(const std::vector<Tensor>& grads) = 0;

  /**
   * Makes the tensors that forward() returned the node's results, according to the context, and returns them: an
   * unchanged input is returned as a view. `records` is whether an input requires a gradient and gradients were on.
   */
  static std::vector<Tensor> wrap_outputs(const intrusive_ptr<CustomNode>& node, Span<Tensor> inputs,
                                          std::vector<Tensor> outputs, bool records);

  void apply(BackwardCall& call) final;
  void release_saved() override;
  std::vector<SavedTensor*> saved() override;
  bool runs_without_gradients() const override { return true; }

 private:
  friend class FunctionContext;

  std::vector<Tensor> saved_in(const BackwardCall& call) const;
  void save(const std::vector<Tensor>& outputs);
  /** Makes each defined tensor the node's output of its index; `several`: forward() returned more than one. */
  void set_histories(const std::vector<Tensor>& recorded, bool several);
  std::vector<Tensor> run_backward(BackwardCall& call);

  std::string own_name_;
  FunctionContext context_;
  std::vector<SavedTensor> saved_;
  std::vector<TensorMeta> outputs_, inputs_;
  bool freed_ = false;
};

namespace detail {
/** "Cube", from the compiler's name of the type. */
TERCEL_API std::string function_name(const char* pretty);
}  // namespace detail

/** Base of a user's op F; see the top. forward() may return a Tensor or a vector of them. */
template <class F>
class Function {
 public:
  /** Calls forward() with gradients off, and records it if a tensor argument requires a gradient. */
  template <class... Args>
  static auto apply(const Args&... args) {
    std::vector<Tensor> inputs;
    (collect(args, inputs), ...);
    bool records = false;
    for (const Tensor& input : inputs) records |= should_record(input);
    auto node = make_intrusive<CallNode>(detail::function_name(__PRETTY_FUNCTION__), inputs);
    auto result = [&] {
      const NoRecordGuard no_record;
      return F::forward(node->context(), args...);
    }();
    if constexpr (std::is_same_v<decltype(result), Tensor>)
      return CustomNode::wrap_outputs(node, inputs, {std::move(result)}, records)[0];
    else
      return CustomNode::wrap_outputs(node, inputs, std::move(result), records);
  }

 private:
  class CallNode final : public CustomNode {
   public:
    using CustomNode::CustomNode;
    std::vector<Tensor> backward(const std::vector<Tensor>& grads) override { return F::backward(context(), grads); }
  };

  template <class T>
  static void collect(const T& arg, std::vector<Tensor>& inputs) {
    if constexpr (std::is_same_v<T, Tensor>) inputs.push_back(arg);
  }
};

}  // namespace tercel
