#include "tercel/autograd/saved_tensor.h"

#include "tercel/autograd/forward_mode.h"
#include "tercel/autograd/record.h"

namespace tercel {

namespace detail {

constinit thread_local const std::shared_ptr<const SavedTensorHooks>* t_saved_tensor_hooks
    [[gnu::tls_model("initial-exec")]] = nullptr;
constinit thread_local uint32_t t_saved_moves [[gnu::tls_model("initial-exec")]] = 0;
constinit thread_local std::vector<SavedTensor*>* t_saved_found [[gnu::tls_model("initial-exec")]] = nullptr;

/** A pack hook's result, and the data to restore the tensor's place in the graph. */
class PackedTensor final : public intrusive_ptr_target {
 public:
  PackedTensor(std::shared_ptr<const SavedTensorHooks> hooks, std::any packed, Edge history)
      : hooks_(std::move(hooks)), packed_(std::move(packed)), history_(std::move(history)) {}

  Tensor unpack() const {
    Tensor out;
    {
      const NoGradGuard no_grad;
      out = hooks_->unpack(packed_);
    }
    TERCEL_CHECK(out.defined(), TypeError, "Output of saved tensor unpack_hook expected to be a Tensor");
    out = out.detach();
    if (!history_.defined()) return out;
    if (!history_.node->is_leaf()) {
      set_history(out, history_.node, history_.output_nr);
    } else {
      ensure_autograd_meta(out).leaf_node = weak_intrusive_ptr<Node>(history_.node);
      out.impl().set_requires_grad_flag(true);
    }
    return out;
  }

 private:
  std::shared_ptr<const SavedTensorHooks> hooks_;
  std::any packed_;
  Edge history_;
};

}  // namespace detail

SavedTensorHooksGuard::SavedTensorHooksGuard(SavedTensorHooks hooks)
    : before_(detail::t_saved_tensor_hooks), hooks_(std::make_shared<const SavedTensorHooks>(std::move(hooks))) {
  detail::t_saved_tensor_hooks = &hooks_;
}

SavedTensorHooksGuard::~SavedTensorHooksGuard() { detail::t_saved_tensor_hooks = before_; }

bool SavedTensor::recording() { return grad_enabled(); }

void SavedTensor::check_and_pack() {
  if (!tensor_.defined()) return;
  TERCEL_CHECK(!tensor_.impl().is_inference(), RuntimeError,
               "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
               "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and "
               "use it in autograd, or use no_grad() instead of inference_mode().");
  pack_with(*detail::t_saved_tensor_hooks);
}

void SavedTensor::pack_with(const std::shared_ptr<const SavedTensorHooks>& hooks) {
  // Tensors that the hook itself saves are not packed, to avoid infinite recursion.
  struct Restore {
    const std::shared_ptr<const SavedTensorHooks>* before;
    ~Restore() { detail::t_saved_tensor_hooks = before; }
  } restore{std::exchange(detail::t_saved_tensor_hooks, nullptr)};
  const NoGradGuard no_grad;
  Edge history = output_nr_ >= 0 ? Edge{} : gradient_edge(tensor_);
  std::any packed = hooks->pack(tensor_);
  TERCEL_CHECK(tensor_.version() == version_, RuntimeError,
               "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
               "not be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
               "issue if you need to perform in-place operations on the input to a pack hook.");
  packed_ = make_intrusive<detail::PackedTensor>(hooks, std::move(packed), std::move(history));
  tensor_ = Tensor();
}

void SavedTensor::register_hooks(const SavedTensorHooks& hooks) {
  TERCEL_CHECK(!packed_.defined(), RuntimeError,
               "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
               "hooks is allowed at a time.");
  TERCEL_CHECK(tensor_.defined(), RuntimeError,
               "Calling register_hooks on a saved tensor with value None is forbidden");
  pack_with(std::make_shared<const SavedTensorHooks>(hooks));
}

SavedTensor SavedTensor::output(const Tensor& output, uint32_t output_nr) {
  SavedTensor saved;
  saved.tensor_ = Tensor(output.impl().shallow_copy(false, true));
  saved.version_ = output.version();
  saved.output_nr_ = static_cast<int32_t>(output_nr);
  if (detail::t_saved_tensor_hooks) [[unlikely]]
    saved.check_and_pack();
  return saved;
}

void SavedTensor::carry_tangent(Span<Tensor> outputs) {
  if (!is_output() || !tensor_.defined()) return;
  const Tensor tangent = detail::tangent_of(outputs[static_cast<size_t>(output_nr_)]);
  if (!tangent.defined()) return;
  detail::set_tangent(tensor_, tangent);
  // The node now holds a tangent whose history may lead to the node: unless a backward pass frees saved tensors, the
  // end of the level does.
  if (tangent.requires_grad()) detail::drop_tangent_at_exit(tensor_);
}

Tensor SavedTensor::unpack() const { return static_cast<detail::PackedTensor&>(*packed_).unpack(); }

Tensor SavedTensor::get(const BackwardCall& call) const {
  if (output_nr_ < 0) return get();
  Tensor out;
  if (packed_.defined()) [[unlikely]] {
    out = unpack();
  } else {
    if (tensor_.version() != version_) [[unlikely]]
      refuse_changed(&call);
    if (!grad_enabled()) return tensor_;
    out = Tensor(tensor_.impl().shallow_copy(false, true));
  }
  if (grad_enabled()) {
    Edge history = call.history(static_cast<uint32_t>(output_nr_));
    detail::set_history(out, std::move(history.node), history.output_nr);
    if (const Tensor tangent = detail::tangent_of(tensor_); tangent.defined()) detail::set_tangent(out, tangent);
  }
  return out;
}

void SavedTensor::refuse_changed(const BackwardCall* call) const {
  const intrusive_ptr<Node> made_by = call ? call->history(0).node : grad_fn(tensor_);
  const uint32_t output_nr = call                ? static_cast<uint32_t>(output_nr_)
                             : made_by.defined() ? autograd_meta(tensor_)->output_nr
                                                 : 0;
  const std::string which =
      made_by.defined() ? str_cat({", which is output ", output_nr, " of ", made_by->name(), ","}) : "";
  throw_error<RuntimeError>({"one of the variables needed for gradient computation has been modified by an inplace ",
                             "operation: [", to_string(tensor_.dtype()), " ", tensor_.sizes(), "]", which,
                             " is at version ", tensor_.version(), "; expected version ", version_,
                             " instead. Hint: clone() the tensor before the operation that changes it."});
}

}  // namespace tercel
