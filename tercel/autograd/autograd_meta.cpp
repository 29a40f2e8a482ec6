#include "tercel/autograd/autograd_meta.h"

#include "tercel/autograd/anomaly.h"
#include "tercel/autograd/autograd.h"
#include "tercel/autograd/forward_mode.h"
#include "tercel/autograd/leaf_node_impl.h"
#include "tercel/autograd/record.h"
#include "tercel/util/process_mutex.h"

namespace tercel {

AutogradMeta::~AutogradMeta() {
  // A node that the graph also owns is not destroyed here.
  if (grad_fn.defined() && grad_fn.use_count() == 1) detail::release_node(std::move(grad_fn));
}

void AutogradMeta::move_retained_gradient(const Tensor& self) {
  if (!extras || !extras->retains_grad) return;
  if (const intrusive_ptr<Node> before = extras->retaining_node.lock(); before.defined())
    std::erase_if(before->extras().retained,
                  [&](const NodeExtras::Retained& r) { return r.tensor.unsafe_get() == &self.impl(); });
  if (!grad_fn.defined()) return;
  grad_fn->extras().retained.push_back(
      {output_nr, weak_intrusive_ptr<TensorImpl, detail::UndefinedTensor>(self.impl_ptr())});
  extras->retaining_node = weak_intrusive_ptr<Node>(grad_fn);
}

namespace {

AutogradMeta& make_autograd_meta(const Tensor& t) {
  auto meta = std::unique_ptr<AutogradMeta>(new AutogradMeta);
  if (TensorImpl* base = t.impl().plain_view_base()) {
    meta->base = Tensor(intrusive_ptr<TensorImpl>::reclaim_copy(base));
    meta->view_base = base;
    // If the base has a history, it was changed since: the view's history must be rebuilt.
    meta->view_version = base->has_history() ? t.version() - 1 : t.version();
  }
  AutogradMeta& out = *meta;
  t.impl().set_autograd_meta(std::move(meta));
  return out;
}

}  // namespace

// Threads that share a tensor may need its metadata and its node at the same time; one of them creates these.
std::mutex& detail::shared_mutex(const Tensor& t) {
  return process_mutex(ProcessMutex::Metadata, reinterpret_cast<uintptr_t>(&t.impl()) / 64 % kMetadataMutexes);
}

namespace {

/** Locks nothing while the process has one thread, like reference counts. */
std::unique_lock<std::mutex> lock_first_use(const Tensor& t) {
  return detail::single_threaded() ? std::unique_lock<std::mutex>() : std::unique_lock(detail::shared_mutex(t));
}

}  // namespace

AutogradMeta& ensure_autograd_meta(const Tensor& t) {
  TERCEL_CHECK(t.defined(), RuntimeError, "gradient: the tensor is undefined");
  if (AutogradMeta* meta = autograd_meta(t)) return *meta;
  const std::unique_lock lock = lock_first_use(t);
  AutogradMeta* meta = autograd_meta(t);
  return meta ? *meta : make_autograd_meta(t);
}

Tensor view_base(const Tensor& t) {
  if (TensorImpl* base = t.impl().plain_view_base()) return Tensor(intrusive_ptr<TensorImpl>::reclaim_copy(base));
  const AutogradMeta* meta = autograd_meta(t);
  return meta ? meta->base : Tensor();
}

intrusive_ptr<Node> grad_fn(const Tensor& t) {
  detail::refresh_view_history(t);
  const AutogradMeta* meta = autograd_meta(t);
  return meta ? meta->grad_fn : intrusive_ptr<Node>();
}

Edge gradient_edge(const Tensor& t) {
  if (!t.requires_grad()) return {};
  detail::refresh_view_history(t);
  AutogradMeta& meta = ensure_autograd_meta(t);
  if (meta.grad_fn.defined()) return {meta.grad_fn, meta.output_nr};
  // A dead node still owns its hooks, which must be destroyed after unlocking: see Note [Locks and fork].
  weak_intrusive_ptr<Node> gone;
  const std::unique_lock lock = lock_first_use(t);
  intrusive_ptr<Node> leaf = meta.leaf_node.lock();
  if (!leaf.defined()) {
    leaf = make_intrusive<LeafNode>(t);
    gone = std::exchange(meta.leaf_node, weak_intrusive_ptr<Node>(leaf));
  }
  return {std::move(leaf), 0};
}

namespace detail {

namespace {

/** Stores anomaly mode's trace and the inputs' tangents in a node that is being recorded. */
void remember_more(Node& node, Span<const Tensor*> inputs) {
  if (anomaly_enabled()) remember_trace(node);
  if (forward_mode_enabled()) remember_tangents(node, inputs);
}

/** Calls visit(i, input), then handles tangents and anomaly mode. */
template <class Inputs, class AddressOf>
void connect(Node& node, const Inputs& inputs, AddressOf address_of) {
  size_t i = 0;
  if (grad_enabled()) [[likely]]
    for (const auto& input : inputs) node.edge(i++) = gradient_edge(*address_of(input));
  if (!anomaly_enabled() && !forward_mode_enabled()) [[likely]]
    return;
  std::vector<const Tensor*> addresses;
  for (const auto& input : inputs) addresses.push_back(address_of(input));
  remember_more(node, addresses);
}

}  // namespace

void connect_inputs(Node& node, InputRefs inputs) {
  connect(node, inputs, [](const InputRef& input) { return &*input; });
}

void connect_inputs(Node& node, Span<Tensor> inputs) {
  connect(node, inputs, [](const Tensor& input) { return &input; });
}

void record_result(const Tensor& out, intrusive_ptr<Node> node) {
  if (forward_mode_enabled() && !carry_tangents(*node, Span<Tensor>(&out, 1))) [[unlikely]]
    return;
  set_history(out, std::move(node), 0);
}

void record_results(Span<Tensor> outs, const intrusive_ptr<Node>& node) {
  if (forward_mode_enabled() && !carry_tangents(*node, outs)) [[unlikely]]
    return;
  for (uint32_t i = 0; i < outs.size(); ++i)
    if (outs[i].is_differentiable()) set_history(outs[i], node, i);
}

void record_change(const Tensor& changed, intrusive_ptr<Node> node) {
  if (forward_mode_enabled() && !carry_tangents(*node, Span<Tensor>(&changed, 1))) [[unlikely]]
    return;
  rebase_history(changed, std::move(node));
}

void set_history(const Tensor& out, intrusive_ptr<Node> node, uint32_t output_nr) {
  // No other thread can see a tensor that an op has just made.
  AutogradMeta* known = autograd_meta(out);
  AutogradMeta& meta = known ? *known : make_autograd_meta(out);
  if (meta.grad_fn.defined()) [[unlikely]]
    release_node(std::move(meta.grad_fn));
  meta.grad_fn = std::move(node);
  meta.output_nr = output_nr;
  meta.view_version.store(out.version(), std::memory_order_relaxed);
  if (meta.extras) [[unlikely]]
    meta.move_retained_gradient(out);
  out.impl().set_history_flags();
}

}  // namespace detail

}  // namespace tercel
