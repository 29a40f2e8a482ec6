#include <mutex>

#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/autograd/leaf_node_impl.h"
#include "tercel/util/process_mutex.h"

namespace tercel {

namespace {

bool is_shared(const Tensor& g) { return g.use_count() > 1 || g.storage().use_count() > 1; }

/** The first gradient of a leaf: copied if it is shared, as later sums, and users, change it in place. */
Gradient to_be_kept(Gradient gradient, const Tensor& leaf) {
  if (gradient.is_coo() || gradient.is_compressed())
    gradient.values = grad_enabled() ? copy_with_layout_of(gradient.values, leaf) : own_sparse(gradient.values);
  if (gradient.is_strided() && (grad_enabled() || is_shared(gradient.values) || !has_layout_of(gradient.values, leaf)))
    gradient.values = copy_with_layout_of(gradient.values, leaf);
  return gradient;
}

/** False if the sum needs a new tensor, since tensors of a graph must not be changed. */
bool add_in_place(const Gradient& sum, const Gradient& gradient) {
  if (!sum.defined() || !sum.is_strided()) return false;
  if (!gradient.is_strided()) {
    if (is_shared(sum.values)) return false;
    add_rows(sum.values, gradient);
    sum.values.impl().bump_version();
    return true;
  }
  if (grad_enabled() || should_record(sum.values, gradient.values)) return false;
  // In place even if it is shared: the leaf's gradient may be part of an arena.
  accumulate_dense(sum.values, gradient.values);
  sum.values.impl().bump_version();
  return true;
}

}  // namespace

void LeafNode::run_leaf_hooks(Gradient& gradient) const {
  if (const auto& hooks = autograd_meta(leaf_)->extras) {
    if (!hooks->on_gradient.empty()) gradient = to_coo(std::move(gradient), leaf_.sizes());
    hooks->on_gradient.for_each(0, [&](const TensorHook& hook) { run_hook(hook, gradient, "a leaf"); });
  }
}

void LeafNode::add(Gradient gradient) {
  Gradient& sum = autograd_meta(leaf_)->grad;
  for (;;) {
    // Recording and destroying user objects must not happen under the mutex: see Note [Locks and fork]. So another
    // thread's gradient may be added in between: then this one's sum is computed again. A dense sum is read only under
    // the mutex, as other threads change it in place; rows are never changed.
    Gradient before, after;
    uint32_t version = 0;
    {
      const std::lock_guard lock(process_mutex(ProcessMutex::Gradients));
      if (add_in_place(sum, gradient)) return;
      if (sum.defined() && sum.is_strided()) {
        after.values = dense_copy(sum.values);
        if (!gradient.is_strided()) {
          add_rows(after.values, gradient);
          std::swap(sum, after);
          return;
        }
        accumulate_dense(after.values, gradient.values);
        version = sum.values.version();
      }
      before = sum;
    }
    if (!before.defined())
      after = gradient = to_be_kept(std::move(gradient), leaf_);
    else if (!before.is_strided())
      after = add_gradients(before, gradient);
    else
      record_sum(after.values, before.values, gradient.values);
    const std::lock_guard lock(process_mutex(ProcessMutex::Gradients));
    if (!sum.values.is_same(before.values)) continue;
    if (sum.defined() && sum.is_strided() && sum.values.version() != version) continue;
    std::swap(sum, after);
    return;
  }
}

void LeafNode::accumulate(Gradient gradient) {
  add(std::move(gradient));
  if (const auto& hooks = autograd_meta(leaf_)->extras)
    hooks->after_accumulation.for_each(0, [&](const LeafHook& hook) { hook(leaf_); });
}

}  // namespace tercel
