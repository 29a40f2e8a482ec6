#include "tercel/autograd/checkpoint.h"

#include <optional>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/function.h"
#include "tercel/core/tensor_meta.h"
#include "tercel/util/format.h"

namespace tercel {

namespace {

class CheckpointNode final : public CustomNode {
 public:
  CheckpointNode(CheckpointedFunction f, const std::vector<Tensor>& inputs, bool preserve)
      : CustomNode("CheckpointFunctionBackward", inputs), function_(std::move(f)), preserve_(preserve) {
    context().save_for_backward(inputs);
    context().set_once_differentiable(true);
  }

  std::vector<Tensor> forward(const std::vector<Tensor>& inputs) {
    const NoGradGuard no_grad;
    const RecordDraws record(draws_);
    return function_(inputs);
  }

  std::vector<Tensor> backward(const std::vector<Tensor>& grads) override {
    TERCEL_CHECK(
        !detail::pass_has_targets(), RuntimeError,
        "Checkpointing is not compatible with .grad() or when an `inputs` parameter is passed to .backward(). When "
        "use_reentrant=True, checkpoint() is incompatible with .grad() or passing an `inputs` "
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
      std::optional<ReplayDraws> again;
      if (preserve_) again.emplace(draws_);
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
  Draws draws_;
};

/** checkpoint() with a nested backward. */
std::vector<Tensor> checkpoint_reentrant(CheckpointedFunction f, const std::vector<Tensor>& inputs, bool preserve) {
  bool records = false;
  for (const Tensor& input : inputs) records |= should_record(input);
  if (!records) return f(inputs);
  auto node = make_intrusive<CheckpointNode>(std::move(f), inputs, preserve);
  std::vector<Tensor> outputs = node->forward(inputs);
  return CustomNode::wrap_outputs(node, inputs, std::move(outputs), records);
}

std::string describe(const TensorMeta& meta) {
  return str_cat({"{shape: ", IntSpan(meta.sizes), ", dtype: ", to_string(meta.dtype()),
                  ", device: ", to_string(meta.options.device), "}"});
}

}  // namespace

/** The tensors that the ops of a scope would have saved, by index, and the function that recomputes them. */
class detail::Recomputation {
 public:
  Recomputation(Callable<void()> run, const CheckpointOptions& options) : run_(std::move(run)), options_(options) {}

  /** The scope's random draws. */
  Draws& draws() { return draws_; }

  size_t add(const Tensor& t) {
    saved_as_.emplace_back(t);
    return saved_as_.size() - 1;
  }

  /** Moves the tensor out: a second request recomputes it. */
  Tensor take(size_t i) {
    if (i >= values_.size() || !values_[i].defined()) calculate();
    return std::move(values_[i]);
  }

 private:
  void calculate() {
    std::vector<Tensor> found;
    {
      const EnableGradGuard enable;
      std::optional<ReplayDraws> again;
      if (options_.preserve_rng_state) again.emplace(draws_);
      const SavedTensorHooksGuard collect({[&found](const Tensor& t) -> std::any {
                                             found.push_back(t.detach());
                                             return found.back();
                                           },
                                           [](const std::any& kept) { return std::any_cast<const Tensor&>(kept); }});
      run_();
    }
    check(found);
    values_ = std::move(found);
  }

  void check(const std::vector<Tensor>& found) const {
    TERCEL_CHECK(found.size() == saved_as_.size(), CheckpointError,
                 "checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                 "Number of tensors saved during forward: ",
                 saved_as_.size(), "\nNumber of tensors saved during recomputation: ", found.size());
    if (!options_.determinism_check) return;
    std::string differ;
    for (size_t i = 0; i < found.size(); ++i)
      if (!(TensorMeta(found[i]) == saved_as_[i]))
        differ += str_cat({"\ntensor at position ", i, ":\nsaved metadata: ", describe(saved_as_[i]),
                           "\nrecomputed metadata: ", describe(TensorMeta(found[i]))});
    TERCEL_CHECK(differ.empty(), CheckpointError,
                 "checkpoint: Recomputed values for the following tensors have different metadata than during the "
                 "forward pass.",
                 differ);
  }

  Callable<void()> run_;
  CheckpointOptions options_;
  Draws draws_;
  std::vector<TensorMeta> saved_as_;
  std::vector<Tensor> values_;
};

CheckpointError::~CheckpointError() = default;

CheckpointScope::CheckpointScope(Callable<void()> recompute, const CheckpointOptions& options)
    : recomputation_(std::make_shared<detail::Recomputation>(std::move(recompute), options)),
      draws_(recomputation_->draws()),
      hooks_({[to = recomputation_](const Tensor& t) -> std::any { return to->add(t); },
              [from = recomputation_](const std::any& number) { return from->take(std::any_cast<size_t>(number)); }}) {}

CheckpointScope::~CheckpointScope() = default;

std::vector<Tensor> checkpoint(CheckpointedFunction f, const std::vector<Tensor>& inputs,
                               const CheckpointOptions& options) {
  if (options.use_reentrant) return checkpoint_reentrant(std::move(f), inputs, options.preserve_rng_state);
  if (!grad_enabled()) return f(inputs);
  std::vector<SavedTensor> saved;
  for (const Tensor& input : inputs) saved.push_back(SavedTensor(input));
  const CheckpointScope scope(
      [f, saved = std::move(saved)] {
        std::vector<Tensor> again;
        for (const SavedTensor& input : saved) again.push_back(input.defined() ? input.get() : Tensor());
        f(again);
      },
      options);
  return f(inputs);
}

std::vector<Tensor> checkpoint_sequential(const std::vector<CheckpointedFunction>& functions, int64_t segments,
                                          const std::vector<Tensor>& inputs, const CheckpointOptions& options) {
  const auto count = static_cast<int64_t>(functions.size());
  TERCEL_CHECK(segments >= 1 && segments <= count, ValueError, "checkpoint_sequential: expected 1 to ", count,
               " segments for ", count, " functions but got ", segments);
  const int64_t length = count / segments;
  const auto part = [&](int64_t begin, int64_t end) -> CheckpointedFunction {
    const std::vector<CheckpointedFunction> own(functions.begin() + begin, functions.begin() + end);
    return [own](const std::vector<Tensor>& given) {
      std::vector<Tensor> now = given;
      for (const CheckpointedFunction& f : own) now = f(now);
      return now;
    };
  };
  std::vector<Tensor> now = inputs;
  for (int64_t s = 0; s + 1 < segments; ++s) now = checkpoint(part(s * length, (s + 1) * length), now, options);
  return part((segments - 1) * length, count)(now);
}

}  // namespace tercel
