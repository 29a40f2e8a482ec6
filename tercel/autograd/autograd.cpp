#include "tercel/autograd/autograd.h"

#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/record.h"

namespace tercel {

Gradient gradient_of(const Tensor& leaf) {
  const AutogradMeta* meta = autograd_meta(leaf);
  return meta ? meta->grad : Gradient();
}

void set_gradient(const Tensor& leaf, Gradient gradient) {
  if (gradient.defined() && !gradient.is_rows())
    TERCEL_CHECK(gradient.values.sizes() == leaf.sizes() && gradient.values.dtype() == leaf.dtype() &&
                     gradient.values.device() == leaf.device(),
                 ValueError, "assigned grad has data of a different size or type: ", describe(gradient.values), " for ",
                 describe(leaf));
  ensure_autograd_meta(leaf).grad = std::move(gradient);
}

void clear_gradient(const Tensor& leaf) {
  if (AutogradMeta* meta = autograd_meta(leaf)) meta->grad = {};
}

void detail::add_hook(const Tensor& t, GradientHookPtr hook) {
  const Edge edge = gradient_edge(t);
  TERCEL_CHECK(edge.defined(), ValueError, "cannot register a hook on a tensor that doesn't require gradient");
  AutogradMeta& meta = *autograd_meta(t);
  if (meta.grad_fn.defined()) {
    edge.node->add_hook(edge.output_nr, std::move(hook));
    return;
  }
  if (!meta.leaf_hooks) meta.leaf_hooks = std::make_unique<std::vector<GradientHookPtr>>();
  meta.leaf_hooks->push_back(std::move(hook));
}

void retain_grad(const Tensor& t) {
  if (t.is_leaf()) return;  // backward leaves it there anyway
  // The hook lives in a node that the tensor holds: it must not hold the tensor.
  const weak_intrusive_ptr<TensorImpl, detail::UndefinedTensor> weak(t.impl_ptr());
  register_hook(t, [weak](const Tensor& gradient) {
    if (auto impl = weak.lock(); impl.defined()) ensure_autograd_meta(Tensor(std::move(impl))).grad = {gradient, {}};
    return Tensor();
  });
}

Tensor& Tensor::requires_grad_(bool wanted) {
  TERCEL_CHECK(defined(), ValueError, "requires_grad_: the tensor is undefined");
  TERCEL_CHECK(!wanted || is_floating_point(), ValueError,
               "only Tensors of floating point dtype can require gradients, not ", to_string(dtype()));
  TERCEL_CHECK(wanted || is_leaf(), ValueError,
               "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
               "subgraph that doesn't require differentiation use detach().");
  if (wanted == requires_grad()) return *this;
  impl_->set_requires_grad_flag(wanted);
  return *this;
}

bool Tensor::is_leaf() const { return !requires_grad() || !tercel::grad_fn(*this).defined(); }

Tensor Tensor::grad() const {
  const Gradient g = gradient_of(*this);
  TERCEL_CHECK(!g.is_rows(), ValueError, "grad: the gradient is of ", g.rows.numel(),
               " rows; gradient_of() gives it as it is");
  return g.values;
}

void Tensor::set_grad(Tensor gradient) { set_gradient(*this, {std::move(gradient), {}}); }

void Tensor::backward(const Tensor& gradient, bool retain_graph) const {
  tercel::backward(Span<Tensor>(this, 1), gradient.defined() ? Span<Tensor>(&gradient, 1) : Span<Tensor>(),
                   retain_graph);
}

Tensor Tensor::detach() const {
  TERCEL_CHECK(defined(), ValueError, "detach: the tensor is undefined");
  return Tensor(impl_->shallow_copy(false, false));
}

Tensor Tensor::data() const {
  TERCEL_CHECK(defined(), ValueError, "data: the tensor is undefined");
  return Tensor(impl_->shallow_copy(true, false));
}

}  // namespace tercel
