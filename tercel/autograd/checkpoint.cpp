#include "tercel/autograd/checkpoint.h"

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/function.h"

namespace tercel {

namespace {

/** Sets the default generator back to where it was, and forth again at the end. */
class GeneratorAt {
 public:
  explicit GeneratorAt(const GeneratorState* then) : active_(then != nullptr), now_(default_generator().state()) {
    if (active_) default_generator().set_state(*then);
  }
  ~GeneratorAt() {
    if (active_) default_generator().set_state(now_);
  }
  GeneratorAt(const GeneratorAt&) = delete;
  GeneratorAt& operator=(const GeneratorAt&) = delete;

 private:
  bool active_;
  GeneratorState now_;
};

class CheckpointNode final : public CustomNode {
 public:
  CheckpointNode(CheckpointedFunction f, const std::vector<Tensor>& inputs, bool preserve)
      : CustomNode("CheckpointFunctionBackward", inputs),
        function_(std::move(f)),
        preserve_(preserve),
        state_(default_generator().state()) {
    context().save_for_backward(inputs);
    context().set_once_differentiable(true);
  }

  std::vector<Tensor> forward(const std::vector<Tensor>& inputs) const {
    const NoGradGuard no_grad;
    return function_(inputs);
  }

  std::vector<Tensor> backward(const std::vector<Tensor>& grads) override {
    TERCEL_CHECK(!detail::pass_has_targets(), RuntimeError,
                 "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                 "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                 ".backward() without passing the `inputs` argument.");
    std::vector<Tensor> inputs;
    for (const Tensor& saved : context().saved_tensors()) {
      Tensor input = saved.defined() ? saved.detach() : saved;
      if (saved.defined() && saved.requires_grad()) input.requires_grad_();
      inputs.push_back(std::move(input));
    }
    std::vector<Tensor> outputs, results, seeds;
    {
      const EnableGradGuard enable;
      const GeneratorAt then(preserve_ ? &state_ : nullptr);
      outputs = function_(inputs);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].defined() || !outputs[i].requires_grad()) continue;
      results.push_back(outputs[i]);
      seeds.push_back(grads.at(i));
    }
    TERCEL_CHECK(!results.empty(), RuntimeError,
                 "none of output has requires_grad=True, this checkpoint() is not necessary");
    tercel::backward(results, seeds);
    std::vector<Tensor> out;
    for (const Tensor& input : inputs) out.push_back(input.defined() ? input.grad() : Tensor());
    return out;
  }

 private:
  CheckpointedFunction function_;
  bool preserve_;
  GeneratorState state_;
};

}  // namespace

std::vector<Tensor> checkpoint(CheckpointedFunction f, const std::vector<Tensor>& inputs, bool preserve_rng_state) {
  bool records = false;
  for (const Tensor& input : inputs) records |= should_record(input);
  if (!records) return f(inputs);
  auto node = make_intrusive<CheckpointNode>(std::move(f), inputs, preserve_rng_state);
  std::vector<Tensor> outputs = node->forward(inputs);
  return CustomNode::wrap_outputs(node, inputs, std::move(outputs), records);
}

}  // namespace tercel
