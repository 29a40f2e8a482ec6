#include "tercel/autograd/autograd.h"

#include <mutex>
#include <utility>

#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/record.h"
#include "tercel/core/context.h"
#include "tercel/util/process_mutex.h"

namespace tercel {

namespace {

/** The old gradient is destroyed after the mutex is unlocked: see Note [Locks and fork]. */
void replace_gradient(AutogradMeta& meta, Gradient gradient) {
  const std::lock_guard lock(process_mutex(ProcessMutex::Gradients));
  std::swap(meta.grad, gradient);
}

}  // namespace

Gradient gradient_of(const Tensor& leaf) {
  const AutogradMeta* meta = autograd_meta(leaf);
  if (!meta) return {};
  const std::lock_guard lock(process_mutex(ProcessMutex::Gradients));
  return meta->grad;
}

void set_gradient(const Tensor& leaf, Gradient gradient) {
  if (gradient.defined() && !gradient.is_rows())
    TERCEL_CHECK(gradient.values.sizes() == leaf.sizes() && gradient.values.dtype() == leaf.dtype() &&
                     gradient.values.device() == leaf.device(),
                 RuntimeError, "assigned grad has data of a different size or type: ", describe(gradient.values),
                 " for ", describe(leaf));
  if (gradient.defined() && !gradient.is_rows())
    TERCEL_CHECK(
        gradient.is_coo() || gradient.values.layout() == leaf.layout(), RuntimeError,
        "attempting to assign a gradient to a tensor that has data of a different type: the gradient has layout ",
        to_string(gradient.values.layout()), ", the tensor ", to_string(leaf.layout()));
  replace_gradient(ensure_autograd_meta(leaf), std::move(gradient));
}

void clear_gradient(const Tensor& leaf) {
  if (AutogradMeta* meta = autograd_meta(leaf)) replace_gradient(*meta, {});
}

HookHandle register_hook(const Tensor& t, TensorHook hook) {
  check_defined("register_hook", t, "self");
  const Edge edge = gradient_edge(t);
  TERCEL_CHECK(edge.defined(), RuntimeError, "cannot register a hook on a tensor that doesn't require gradient");
  AutogradMeta& meta = *autograd_meta(t);
  if (meta.grad_fn.defined()) return edge.node->extras().tensor_hooks.add(std::move(hook), edge.output_nr);
  return meta.ensure_extras().on_gradient.add(std::move(hook));
}

HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, LeafHook hook) {
  check_defined("register_post_accumulate_grad_hook", leaf, "self");
  TERCEL_CHECK(leaf.requires_grad(), RuntimeError, "cannot register a hook on a tensor that doesn't require gradient");
  TERCEL_CHECK(leaf.is_leaf(), RuntimeError, "post accumulate grad hooks cannot be registered on non-leaf tensors");
  AutogradMeta& meta = ensure_autograd_meta(leaf);
  return meta.ensure_extras().after_accumulation.add(std::move(hook));
}

void retain_grad(const Tensor& t) {
  check_defined("retain_grad", t, "self");
  TERCEL_CHECK(t.requires_grad(), RuntimeError, "can't retain_grad on Tensor that has requires_grad=False");
  if (t.is_leaf() || retains_grad(t)) return;  // backward leaves it in a leaf anyway
  AutogradMeta& meta = ensure_autograd_meta(t);
  meta.ensure_extras().retains_grad = true;
  meta.move_retained_gradient(t);
}

bool retains_grad(const Tensor& t) {
  const AutogradMeta* meta = autograd_meta(t);
  return meta && meta->extras && meta->extras->retains_grad;
}

uint32_t output_nr(const Tensor& t) {
  if (!grad_fn(t).defined()) return 0;
  return autograd_meta(t)->output_nr;
}

const Tensor& detach_(const Tensor& t) {
  check_defined("detach_", t, "self");
  TERCEL_CHECK(!view_base(t).defined(), RuntimeError, "Can't detach views in-place. Use detach() instead.");
  if (AutogradMeta* meta = autograd_meta(t)) {
    detail::release_node(std::move(meta->grad_fn));
    meta->grad_fn.reset();
    meta->output_nr = 0;
    if (meta->extras) meta->extras->retains_grad = false;
  }
  t.impl().clear_history_flags();
  return t;
}

void set_data(const Tensor& t, const Tensor& data) {
  check_defined("set_data", t, "self");
  check_defined("set_data", data, "data");
  TERCEL_CHECK(t.dtype() == data.dtype() && t.device() == data.device() && t.layout() == data.layout(), RuntimeError,
               "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor "
               "type.");
  t.impl().shallow_copy_from(data.impl());
}

Tensor& Tensor::requires_grad_(bool wanted) {
  TERCEL_CHECK(defined(), RuntimeError, "requires_grad_: the tensor is undefined");
  if (wanted && layout() == Layout::Opaque) refuse_layout("requires_grad_", layout());
  TERCEL_CHECK(!wanted || is_differentiable(), RuntimeError,
               "only Tensors of floating point and complex dtype can require gradients, not ", to_string(dtype()));
  TERCEL_CHECK(wanted || is_leaf(), RuntimeError,
               "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
               "subgraph that doesn't require differentiation use detach().");
  TERCEL_CHECK(!wanted || !impl_->is_inference() || is_inference_mode_enabled(), RuntimeError,
               "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (wanted == requires_grad()) return *this;
  impl_->set_requires_grad_flag(wanted);
  return *this;
}

bool Tensor::is_leaf() const { return !requires_grad() || !tercel::grad_fn(*this).defined(); }

Tensor Tensor::grad() const {
  const Gradient g = gradient_of(*this);
  TERCEL_CHECK(!g.is_rows(), RuntimeError, "grad: the gradient is a row gradient of ", g.rows.numel(),
               " rows; use gradient_of() to read it");
  return g.values;
}

void Tensor::set_grad(Tensor gradient) { set_gradient(*this, {std::move(gradient), {}}); }

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      Span<Tensor> inputs) const {
  tercel::backward(Span<Tensor>(this, 1), gradient.defined() ? Span<Tensor>(&gradient, 1) : Span<Tensor>(),
                   retain_graph, create_graph, inputs);
}

HookHandle Tensor::register_hook(Callable<Tensor(const Tensor&)> hook) const {
  return tercel::register_hook(*this, std::move(hook));
}
void Tensor::retain_grad() const { tercel::retain_grad(*this); }
bool Tensor::retains_grad() const { return tercel::retains_grad(*this); }
uint32_t Tensor::output_nr() const { return tercel::output_nr(*this); }
Tensor& Tensor::detach_() const { return const_cast<Tensor&>(tercel::detach_(*this)); }
void Tensor::set_data(const Tensor& data) const { tercel::set_data(*this, data); }

Tensor Tensor::detach() const {
  TERCEL_CHECK(defined(), RuntimeError, "detach: the tensor is undefined");
  return Tensor(impl_->shallow_copy(false, detach_allows_metadata_change()));
}

Tensor Tensor::data() const {
  TERCEL_CHECK(defined(), RuntimeError, "data: the tensor is undefined");
  return Tensor(impl_->shallow_copy(true, detach_allows_metadata_change()));
}

}  // namespace tercel
