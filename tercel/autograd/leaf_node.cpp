#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/autograd/leaf_node_impl.h"

namespace tercel {

namespace {

std::mutex g_leaf_mutex;

bool is_shared(const Tensor& g) { return g.use_count() > 1 || g.storage().use_count() > 1; }

}  // namespace

void LeafNode::run_leaf_hooks(Gradient& gradient) const {
  if (const auto& hooks = autograd_meta(leaf_)->extras)
    hooks->on_gradient.for_each(0, [&](const TensorHook& hook) { run_hook(hook, gradient, "a leaf"); });
}

void LeafNode::add(Gradient gradient) {
  const std::scoped_lock lock(g_leaf_mutex);
  Gradient& sum = autograd_meta(leaf_)->grad;
  if (!sum.defined()) {
    // A gradient that is somebody else's too must not be changed by later sums.
    if (!gradient.is_rows() && (grad_enabled() || is_shared(gradient.values) || !has_layout_of(gradient.values, leaf_)))
      gradient.values = copy_with_layout_of(gradient.values, leaf_);
    sum = std::move(gradient);
  } else if (!sum.is_rows() && !gradient.is_rows() && !grad_enabled() && !should_record(sum.values, gradient.values)) {
    // In place: the leaf's gradient may be part of an arena.
    accumulate_dense(sum.values, gradient.values);
    sum.values.impl().bump_version();
  } else {
    // A part of a graph is not changed: then the sum is another tensor.
    sum = add_gradients(std::move(sum), std::move(gradient));
  }
}

void LeafNode::accumulate(Gradient gradient) {
  add(std::move(gradient));
  if (const auto& hooks = autograd_meta(leaf_)->extras)
    hooks->after_accumulation.for_each(0, [&](const LeafHook& hook) { hook(leaf_); });
}

}  // namespace tercel
