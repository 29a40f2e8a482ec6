#include "tercel/autograd/autograd_meta.h"

#include <cstring>
#include <mutex>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/leaf_node_impl.h"
#include "tercel/autograd/record.h"

namespace tercel {

AutogradMeta::~AutogradMeta() = default;

namespace {

AutogradMeta& make_autograd_meta(const Tensor& t) {
  auto meta = std::unique_ptr<AutogradMeta>(new AutogradMeta);
  if (TensorImpl* base = t.impl().plain_view_base()) {
    meta->base = Tensor(intrusive_ptr<TensorImpl>::reclaim_copy(base));
    meta->view_version = t.version();
  }
  AutogradMeta& out = *meta;
  t.impl().set_autograd_meta(std::move(meta));
  return out;
}

// Threads that share a leaf may be the first to need its metadata and its node; one of them makes these.
std::mutex& shared_mutex(const Tensor& t) {
  constexpr size_t kMutexes = 64;
  constinit static std::mutex mutexes[kMutexes];
  return mutexes[reinterpret_cast<uintptr_t>(&t.impl()) / 64 % kMutexes];
}

}  // namespace

AutogradMeta& ensure_autograd_meta(const Tensor& t) {
  TERCEL_CHECK(t.defined(), ValueError, "gradient: the tensor is undefined");
  if (AutogradMeta* meta = autograd_meta(t)) return *meta;
  const std::lock_guard lock(shared_mutex(t));
  AutogradMeta* meta = autograd_meta(t);
  return meta ? *meta : make_autograd_meta(t);
}

Tensor view_base(const Tensor& t) {
  if (TensorImpl* base = t.impl().plain_view_base()) return Tensor(intrusive_ptr<TensorImpl>::reclaim_copy(base));
  const AutogradMeta* meta = autograd_meta(t);
  return meta ? meta->base : Tensor();
}

namespace {

/** Where a view lies in its base's storage. */
struct Region {
  DimVector sizes, strides;
  int64_t offset = 0;

  explicit Region(const Tensor& t) : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()) {}

  /** The same elements of a tensor that has the geometry of `like`, whose storage may start elsewhere. */
  Tensor of(const Tensor& like, int64_t like_offset) const {
    return Tensor(make_intrusive<TensorImpl>(like.storage(), like.dtype(), sizes, strides,
                                             offset - like_offset + like.storage_offset()));
  }
};

/** A zero tensor with the base's own strides where those are dense, so that a region has the same place in it. */
Tensor zeros_in_place_of(const Region& base, ScalarType dtype) {
  const Extent extent = extent_of(base.sizes, base.strides);
  Tensor flat = empty({numel_of(base.sizes) == 0 ? 0 : extent.highest - extent.lowest + 1}, dtype);
  if (flat.numel() > 0) std::memset(flat.data_ptr(), 0, flat.nbytes());
  return Tensor(make_intrusive<TensorImpl>(flat.storage(), dtype, base.sizes, base.strides, -extent.lowest));
}

/** Backward of "the base, as the view sees it": the gradient, put in its place among zeros. */
auto view_of_base_backward(const Tensor& base, const Tensor& view) {
  return [base_region = Region(base), view_region = Region(view)](BackwardCall& call) {
    if (!call.needs(0)) return;
    Tensor out = zeros_in_place_of(base_region, call.grad().dtype());
    accumulate_dense(view_region.of(out, base_region.offset), call.grad());
    call.set(0, std::move(out));
  };
}

/** Makes a view's grad_fn anew when its data, and so its base's history, has changed since. */
void refresh_view_history(const Tensor& t) {
  AutogradMeta* meta = autograd_meta(t);
  const bool plain = t.impl().plain_view_base() != nullptr;
  if (!plain && !(meta && meta->base.defined() && meta->view_version != t.version())) return;
  const Tensor base = view_base(t);
  const AutogradMeta* base_meta = autograd_meta(base);
  if (!base_meta || !base_meta->grad_fn.defined()) return;
  TERCEL_CHECK(t.impl().view_origin() != ViewOrigin::NoGrad, ValueError,
               "A view was created in no_grad mode and its base or another view of its base has been modified inplace "
               "with grad mode enabled. Make the view with gradients enabled, or after its base has changed.");
  AutogradMeta& m = ensure_autograd_meta(t);
  auto node = detail::make_node("AsStridedBackward0", 1, InputRefs{base}, view_of_base_backward(base, t));
  m.grad_fn = std::move(node);
  m.output_nr = 0;
  m.view_version = t.version();
  t.impl().set_requires_grad_flag(true);
  t.impl().set_history_flag(true);
}

}  // namespace

intrusive_ptr<Node> grad_fn(const Tensor& t) {
  refresh_view_history(t);
  const AutogradMeta* meta = autograd_meta(t);
  return meta ? meta->grad_fn : intrusive_ptr<Node>();
}

Edge gradient_edge(const Tensor& t) {
  if (!t.requires_grad()) return {};
  refresh_view_history(t);
  AutogradMeta& meta = ensure_autograd_meta(t);
  if (meta.grad_fn.defined()) return {meta.grad_fn, meta.output_nr};
  const std::lock_guard lock(shared_mutex(t));
  intrusive_ptr<Node> leaf = meta.leaf_node.lock();
  if (!leaf.defined()) {
    leaf = make_intrusive<LeafNode>(t);
    meta.leaf_node = weak_intrusive_ptr<Node>(leaf);
  }
  return {std::move(leaf), 0};
}

namespace detail {

void connect_inputs(Node& node, InputRefs inputs) {
  size_t i = 0;
  for (const InputRef& input : inputs) node.edge(i++) = gradient_edge(*input);
}

void connect_inputs(Node& node, Span<Tensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) node.edge(i) = gradient_edge(inputs[i]);
}

void set_history(const Tensor& out, intrusive_ptr<Node> node, uint32_t output_nr) {
  // What an op has just made is no other thread's yet.
  AutogradMeta* known = autograd_meta(out);
  AutogradMeta& meta = known ? *known : make_autograd_meta(out);
  meta.grad_fn = std::move(node);
  meta.output_nr = output_nr;
  meta.view_version = out.version();
  out.impl().set_requires_grad_flag(true);
  out.impl().set_history_flag(true);
}

namespace {

/**
 * The base after an in-place op on one of its views. Gradient of what the base was: outside the view that of the base
 * now; inside, what the op's own backward makes of it.
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
    Tensor whole = zeros_in_place_of(base_, call.grad().dtype());
    copy_elements(whole, call.grad());
    const Tensor slice = view_.of(whole, base_.offset);
    Gradient in{dense_copy(slice), {}};
    std::vector<Gradient> out(num_edges());
    BackwardCall inner(*op_, &in, out.data());
    op_->apply(inner);
    if (call.needs(0)) {
      if (out[0].defined())
        copy_elements(slice, out[0].values);
      else
        copy_elements(slice, zeros_in_place_of(view_, whole.dtype()));
      call.set(0, std::move(whole));
    }
    for (size_t i = 1; i < num_edges(); ++i) call.set(i, std::move(out[i]));
  }
  void release_saved() override { op_->release_saved(); }

 private:
  Region base_, view_;
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
  // A view of a view has the same base; the tagged pointer costs one reference and no metadata.
  TensorImpl* root = base_or_view.impl().plain_view_base();
  if (!root) {
    const AutogradMeta* meta = autograd_meta(base_or_view);
    root = meta && meta->base.defined() ? &meta->base.impl() : &base_or_view.impl();
  }
  if (origin == ViewOrigin::Ordinary) {
    origin = !grad_enabled() ? ViewOrigin::NoGrad : base_or_view.impl().view_origin();
  }
  view.impl().set_plain_view_base(intrusive_ptr<TensorImpl>::reclaim_copy(root), origin);
  if (origin != ViewOrigin::NoGrad || !base_or_view.requires_grad()) return;
  // Gradients do not pass through it, and whether its base has changed since is told by the version.
  make_autograd_meta(view);
  view.impl().set_requires_grad_flag(true);
}

}  // namespace detail

void check_inplace(const Tensor& changed, bool records) {
  if (!grad_enabled()) return;
  if (!records && !changed.requires_grad()) return;
  const Tensor base = view_base(changed);
  if (base.defined()) {
    TERCEL_CHECK(
        changed.impl().view_origin() != ViewOrigin::MultiOutput, ValueError, "Output of ",
        grad_fn(changed).defined() ? grad_fn(changed)->name() : "a multi-output view",
        " is a view and is being modified inplace. This view is the output of a function that returns multiple "
        "views. Such functions do not allow the output views to be modified inplace. You should replace the "
        "inplace operation by an out-of-place one.");
    TERCEL_CHECK(changed.impl().view_origin() != ViewOrigin::NoGrad, ValueError,
                 "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Make the "
                 "view with gradients enabled, or change it inside a NoGradGuard.");
    TERCEL_CHECK(!(base.requires_grad() && base.is_leaf()), ValueError,
                 "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  TERCEL_CHECK(!(changed.requires_grad() && changed.is_leaf()), ValueError,
               "a leaf Variable that requires grad is being used in an in-place operation.");
}

SavedTensor SavedTensor::output(const Tensor& output) {
  SavedTensor saved;
  saved.tensor_ = Tensor(output.impl().shallow_copy(false, true));
  saved.version_ = output.version();
  return saved;
}

void SavedTensor::refuse_changed() const {
  const intrusive_ptr<Node> made_by = grad_fn(tensor_);
  const std::string which =
      made_by.defined()
          ? str_cat({", which is output ", autograd_meta(tensor_)->output_nr, " of ", made_by->name(), ","})
          : "";
  throw_error<ValueError>({"one of the variables needed for gradient computation has been modified by an inplace ",
                           "operation: [", to_string(tensor_.dtype()), " ", tensor_.sizes(), "]", which,
                           " is at version ", tensor_.version(), "; expected version ", version_,
                           " instead. Hint: clone() the tensor before the operation that changes it."});
}

}  // namespace tercel
