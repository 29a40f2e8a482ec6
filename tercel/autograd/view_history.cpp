// Propagates in-place changes between the histories of views and bases.
#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/forward_mode.h"
#include "tercel/autograd/record.h"
#include "tercel/autograd/strided_region.h"

namespace tercel {

namespace {

/** Backward of "the base, as the view sees it": the gradient at the view's position, with zeros elsewhere. */
auto view_of_base_backward(const Tensor& base, const Tensor& view) {
  return [base_region = StridedRegion(base), view_region = StridedRegion(view)](BackwardCall& call) {
    if (call.needs(0)) call.set(0, as_strided_backward(call.grad(), view_region, base_region, false));
  };
}

/** The base of a view whose grad_fn is out of date, because its data and so its base's history has changed since. */
TensorImpl* base_with_newer_history(const Tensor& t) {
  TensorImpl* base = t.impl().plain_view_base();
  if (!base) {
    const AutogradMeta* meta = autograd_meta(t);
    base = meta ? meta->view_base : nullptr;
    if (!base || meta->view_version.load(std::memory_order_acquire) == t.version()) return nullptr;
  }
  return base->has_history() ? base : nullptr;
}

/** For a view returned by a custom function, whose backward would be bypassed by a history rebuilt from the base. */
[[noreturn]] void refuse_function_view(const Tensor& view, const Node* made_by, const char* what_is_modified) {
  const bool several = view.impl().view_origin() == ViewOrigin::MultiOutput;
  throw_error<RuntimeError>(
      {"Output ", made_by ? autograd_meta(view)->output_nr : 0u, " of ",
       made_by ? made_by->name() : "a multi-output view", " is a view and ", what_is_modified, " modified inplace. ",
       several ? "This view is the output of a function that returns multiple views. Such functions do not allow the "
                 "output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
               : "This view was created inside a custom Function (or because an input was returned as-is) and the "
                 "autograd logic to handle view+inplace would override the custom backward associated with the custom "
                 "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning "
                 "the output of the custom Function."});
}

/** The slow path of refresh_view_history(). */
[[gnu::noinline]] void refresh_from(const Tensor& base, const Tensor& t) {
  TERCEL_CHECK(t.layout() == Layout::Strided, NotImplementedError, "A view of layout ", to_string(t.layout()),
               " is used after a recorded in-place change of its base: make the view after the change.");
  const AutogradMeta* before = autograd_meta(t);
  if ((t.impl().view_origin() == ViewOrigin::MultiOutput || t.impl().view_origin() == ViewOrigin::CustomFunction) &&
      before && before->grad_fn)
    refuse_function_view(t, before->grad_fn.get(), "its base or another view of its base has been");
  TERCEL_CHECK(t.impl().view_origin() != ViewOrigin::NoGrad && t.impl().view_origin() != ViewOrigin::Inference,
               RuntimeError, "A view was created in ",
               t.impl().view_origin() == ViewOrigin::NoGrad ? "no_grad" : "inference",
               " mode and its base or another view of its base has been modified inplace with grad mode enabled. Make "
               "the view with gradients enabled, or after its base has changed.");
  // Other threads may do the same. The node is created first, since that takes locks; the first published one is used.
  // It represents ops that were recorded, in whatever mode it is first asked for.
  const GradModeGuard records(true);
  const ForwardModeGuard no_tangents(false);
  intrusive_ptr<Node> node =
      detail::make_node("AsStridedBackward0", 1, InputRefs{base}, view_of_base_backward(base, t));
  AutogradMeta& meta = ensure_autograd_meta(t);
  const std::lock_guard lock(detail::shared_mutex(t));
  if (meta.view_version.load(std::memory_order_relaxed) == t.version()) return;
  // The old node must be destroyed after unlocking: see Note [Locks and fork].
  std::swap(meta.grad_fn, node);
  meta.output_nr = 0;
  meta.move_retained_gradient(t);
  t.impl().set_history_flags();
  // A thread that sees this version also sees the writes above.
  meta.view_version.store(t.version(), std::memory_order_release);
}

}  // namespace

Tensor detail::same_view(const Tensor& view, const Tensor& base, const Tensor& other) {
  // A view may have another dtype than its base: places are counted in bytes.
  const int64_t size = static_cast<int64_t>(view.itemsize());
  const int64_t moved = (other.storage_offset() - base.storage_offset()) * static_cast<int64_t>(base.itemsize());
  const int64_t offset = (view.storage_offset() * size + moved) / size;
  const Extent extent = extent_of(view.sizes(), view.strides());
  TERCEL_CHECK(
      view.numel() == 0 || (offset + extent.lowest >= 0 &&
                            static_cast<size_t>((offset + extent.highest + 1) * size) <= other.storage()->nbytes()),
      RuntimeError, "a view that reaches beyond its base cannot carry a tangent");
  const Tensor out(make_intrusive<TensorImpl>(other.storage(), view.dtype(), view.sizes(), view.strides(), offset));
  make_view("AsStridedBackward0", out, other, [&] { return view_of_base_backward(other, out); });
  return out;
}

void detail::refresh_view_history(const Tensor& t) {
  if (TensorImpl* base = base_with_newer_history(t)) [[unlikely]]
    refresh_from(Tensor(intrusive_ptr<TensorImpl>::reclaim_copy(base)), t);
}

namespace detail {

namespace {

/**
 * The base after an in-place op on one of its views. The old base's gradient is the new base's outside the view;
 * inside, it is the result of the op's own backward.
 */
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, intrusive_ptr<Node> op)
      : Node("CopySlices", 1, op->num_edges()), base_(base), view_(view), op_(std::move(op)) {
    edge(0) = gradient_edge(base);
    for (size_t i = 1; i < num_edges(); ++i) edge(i) = op_->edge(i);
    // Input 0 of the op is the view itself, whose gradient goes to the base through this node.
    op_->edge(0) = edge(0);
  }

  void apply(BackwardCall& call) override {
    Gradient in{as_strided_backward(call.grad(), base_, view_, true), {}};
    // Outputs that the op has saved are the view of this node's result.
    Edge history;
    if (grad_enabled()) {
      history.node = make_intrusive<FunctionNode<ToBase>>("AsStridedBackward0", 1, 1, ToBase{base_, view_});
      history.node->edge(0) = call.history(0);
    }
    std::vector<Gradient> out(num_edges());
    BackwardCall inner(*op_, &in, out.data(), call.wanted(), history.defined() ? &history : nullptr);
    op_->apply(inner);
    if (call.needs(0)) call.set(0, replace_strided_region(call.grad(), base_, view_, out[0].values));
    for (size_t i = 1; i < num_edges(); ++i) call.set(i, std::move(out[i]));
  }
  void release_saved() override { op_->release_saved(); }
  std::vector<SavedTensor*> saved() override { return op_->saved(); }

 private:
  struct ToBase {
    StridedRegion base, view;
    void operator()(BackwardCall& call) const { call.set(0, as_strided_backward(call.grad(), view, base, false)); }
  };

  StridedRegion base_, view_;
  intrusive_ptr<Node> op_;
};

}  // namespace

void rebase_history(const Tensor& changed, intrusive_ptr<Node> node) {
  const Tensor base = view_base(changed);
  if (!base.defined()) {
    set_history(changed, std::move(node), 0);
    return;
  }
  set_history(base, make_intrusive<CopySlices>(base, changed, std::move(node)), 0);
  ensure_autograd_meta(changed).view_version = changed.version() - 1;  // out of date: make it from the new base
  refresh_view_history(changed);
}

void init_view(const Tensor& view, const Tensor& base_or_view, ViewOrigin origin) {
  if (base_or_view.impl().is_inference()) [[unlikely]]
    return;
  // A view of a view has the same base; the tagged pointer costs one reference and no metadata.
  TensorImpl* root = base_or_view.impl().plain_view_base();
  if (!root) {
    const AutogradMeta* meta = autograd_meta(base_or_view);
    root = meta && meta->base.defined() ? &meta->base.impl() : &base_or_view.impl();
  }
  if (!grad_enabled())
    origin = detail::t_inference_mode ? ViewOrigin::Inference : ViewOrigin::NoGrad;
  else if (origin == ViewOrigin::Ordinary)
    origin = base_or_view.impl().view_origin();
  view.impl().set_plain_view_base(intrusive_ptr<TensorImpl>::reclaim_copy(root), origin);
  if ((origin != ViewOrigin::NoGrad && origin != ViewOrigin::Inference) || !base_or_view.requires_grad()) return;
  // Gradients do not pass through it; the version tells whether its base has changed since.
  ensure_autograd_meta(view).view_version = view.version();
  view.impl().set_requires_grad_flag(true);
}

}  // namespace detail

void check_inplace(const Tensor& changed, bool records) {
  TERCEL_CHECK(!changed.impl().is_inference() || is_inference_mode_enabled(), RuntimeError,
               "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
               "normal tensor before doing inplace update.");
  if (!grad_enabled()) return;
  if (!records && !changed.requires_grad()) {
    // A view that was created before its base required a gradient.
    const TensorImpl* viewed = changed.impl().plain_view_base();
    if (!viewed || !viewed->requires_grad()) return;
  }
  const Tensor base = view_base(changed);
  if (base.defined()) {
    const ViewOrigin origin = changed.impl().view_origin();
    if (origin == ViewOrigin::MultiOutput || origin == ViewOrigin::CustomFunction) {
      const intrusive_ptr<Node> made_by = grad_fn(changed);
      refuse_function_view(changed, made_by.get(), "is being");
    }
    TERCEL_CHECK(
        origin != ViewOrigin::NoGrad && origin != ViewOrigin::Inference, RuntimeError, "A view was created in ",
        origin == ViewOrigin::NoGrad ? "no_grad" : "inference",
        " mode and is being modified inplace with grad mode enabled. Given that this use case is ambiguous and "
        "error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace "
        "either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside "
        "(if you want the inplace to be tracked).");
    TERCEL_CHECK(!(base.requires_grad() && base.is_leaf()), RuntimeError,
                 "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    TERCEL_CHECK(!records || changed.layout() == Layout::Strided, NotImplementedError,
                 "In-place changes of a view of layout ", to_string(changed.layout()),
                 " are not recorded: change its base, or use the function that returns a new tensor.");
  }
  TERCEL_CHECK(!(changed.requires_grad() && changed.is_leaf()), RuntimeError,
               "a leaf Variable that requires grad is being used in an in-place operation.");
}

}  // namespace tercel
