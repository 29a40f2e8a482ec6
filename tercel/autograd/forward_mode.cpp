#include "tercel/autograd/forward_mode.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/record.h"
#include "tercel/autograd/strided_region.h"

namespace tercel {

namespace {

// Unique level numbers stored with tangents, so that a tangent of an ended level is never valid again.
std::atomic<uint64_t> g_levels{0};
thread_local uint64_t t_level = 0;  // 0: none

using WeakTensor = weak_intrusive_ptr<TensorImpl, detail::UndefinedTensor>;

/** Tensors whose tangents the end of the level drops. */
std::vector<WeakTensor>& dropped_at_exit() {
  static thread_local std::vector<WeakTensor> tensors;
  return tensors;
}

}  // namespace

int64_t enter_dual_level() {
  TERCEL_CHECK(t_level == 0, RuntimeError,
               "Nested forward mode AD is not supported at the moment: leave the dual level before the next begins.");
  t_level = ++g_levels;
  detail::set_recorded(TensorImpl::kTangent, true);
  return 0;
}

void exit_dual_level() {
  TERCEL_CHECK(t_level != 0, RuntimeError, "Trying to exit a forward AD level but no level exists.");
  t_level = 0;
  detail::set_recorded(TensorImpl::kTangent, false);
  const std::vector<WeakTensor> dropped = std::exchange(dropped_at_exit(), {});
  for (const WeakTensor& weak : dropped)
    if (auto impl = weak.lock(); impl.defined())
      ensure_autograd_meta(Tensor(std::move(impl))).ensure_extras().tangent = {};
}

int64_t current_dual_level() { return t_level == 0 ? -1 : 0; }

DualLevel::DualLevel() { enter_dual_level(); }
DualLevel::~DualLevel() {
  if (t_level != 0) exit_dual_level();
}

namespace {

Tensor own_tangent(const Tensor& x) {
  const AutogradMeta* meta = autograd_meta(x);
  return meta && meta->extras && meta->extras->tangent_level == t_level ? meta->extras->tangent : Tensor();
}

void keep_tangent(const Tensor& x, Tensor tangent) {
  AutogradMeta::Extras& extras = ensure_autograd_meta(x).ensure_extras();
  extras.tangent = std::move(tangent);
  extras.tangent_level = t_level;
  x.impl().set_tangent_flag();
}

/** Ignores dimensions of size 1. */
bool same_strides(const Tensor& a, const Tensor& b) {
  for (size_t d = 0; d < a.sizes().size(); ++d)
    if (a.sizes()[d] > 1 && a.strides()[d] != b.strides()[d]) return false;
  return true;
}

/** Zeros with the sizes and strides of x. */
Tensor zeros_laid_out_as(const Tensor& x) {
  const Extent extent = extent_of(x.sizes(), x.strides());
  const bool none = x.numel() == 0;
  const Tensor flat = empty({none ? 0 : extent.highest - extent.lowest + 1}, TensorOptions(x.dtype(), x.device()));
  if (!none) std::memset(flat.data_ptr(), 0, flat.nbytes());
  return Tensor(
      make_intrusive<TensorImpl>(flat.storage(), x.dtype(), x.sizes(), x.strides(), none ? 0 : -extent.lowest));
}

/** t with the strides of x, so that views of x apply to it too. */
Tensor laid_out_as(const Tensor& t, const Tensor& x) {
  if (t.numel() == 0 || same_strides(t, x)) return t;
  const Tensor out = zeros_laid_out_as(x);
  copy_elements(out, t);
  if (should_record(t))
    record("CopyBackwards", out, {Tensor(), t}, [](BackwardCall& call) { call.set(1, call.take()); });
  return out;
}

/** A tensor over x's elements, a result of x but not a view of it: the two have separate tangents. */
Tensor alias(const char* name, const Tensor& x) {
  const ForwardModeGuard no_tangents(false);
  Tensor out(x.impl().shallow_copy(false, true));
  if (should_record(x)) record(name, out, {x}, [](BackwardCall& call) { call.set(0, call.take()); });
  return out;
}

[[noreturn]] void refuse(const Node& node) {
  std::string op = node.name();
  if (const size_t end = op.find("Backward"); end != std::string::npos) op.resize(end);
  throw_error<NotImplementedError>(
      {"Trying to use forward AD with ", op, " that does not support it because it has not been implemented yet."});
}

/** See Note [Tangents by transposition]; an undefined one is zero. */
std::vector<Tensor> transposed(Node& node, Span<Tensor> outs, const std::vector<Tensor>& tangents, bool has_edge) {
  bool create_graph = grad_enabled() && has_edge;
  for (const Tensor& t : tangents) create_graph |= grad_enabled() && t.requires_grad();
  const EnableGradGuard enable;
  std::vector<Gradient> incoming(outs.size()), outgoing(node.num_edges());
  std::vector<uint8_t> wanted;
  for (const Tensor& t : tangents) wanted.push_back(t.defined() ? 1 : 0);
  std::vector<Tensor> seeds;
  std::vector<size_t> seeded;
  for (size_t i = 0; i < outs.size(); ++i) {
    if (!outs[i].defined() || !outs[i].is_differentiable()) continue;
    Tensor seed = empty(outs[i].sizes(), TensorOptions(outs[i].dtype(), outs[i].device()));
    if (seed.numel() > 0) std::memset(seed.data_ptr(), 0, seed.nbytes());
    incoming[i].values = seed.requires_grad_();
    seeds.push_back(std::move(seed));
    seeded.push_back(i);
  }
  BackwardCall call(node, incoming.data(), outgoing.data(), wanted.data());
  node.apply(call);
  std::vector<Tensor> values, directions;
  for (size_t i = 0; i < tangents.size(); ++i) {
    const Gradient& g = outgoing[i];
    if (!tangents[i].defined() || !g.defined()) continue;
    if (g.is_rows() || detail::is_derivative_forbidden(g.values)) refuse(node);
    if (!g.values.requires_grad()) continue;
    values.push_back(g.values);
    directions.push_back(tangents[i]);
  }
  std::vector<Tensor> out(outs.size());
  if (values.empty() || seeds.empty()) return out;
  const std::vector<Gradient> found = grad(values, seeds, directions, std::nullopt, create_graph, true);
  for (size_t i = 0; i < found.size(); ++i) out[seeded[i]] = found[i].values;
  return out;
}

}  // namespace

Tensor detail::tangent_of(const Tensor& x) {
  if (!x.defined() || !x.impl().is_tracked(TensorImpl::kTangent) || t_level == 0) return {};
  if (Tensor own = own_tangent(x); own.defined()) return own;
  const Tensor base = view_base(x);
  const Tensor whole = base.defined() ? own_tangent(base) : Tensor();
  if (!whole.defined()) return {};
  const ForwardModeGuard no_tangents(false);
  return same_view(x, base, whole);
}

void detail::set_tangent(const Tensor& x, const Tensor& tangent) {
  const ForwardModeGuard no_tangents(false);
  const Tensor base = view_base(x);
  if (!base.defined()) return keep_tangent(x, laid_out_as(tangent, x));
  Tensor whole = own_tangent(base);
  if (whole.defined() && should_record(whole, tangent)) {
    whole = replace_strided_region(whole, StridedRegion(whole), StridedRegion(same_view(x, base, whole)), tangent);
  } else {
    // Tensors of other owners, such as the argument of make_dual(), must not be written to.
    const bool own = whole.defined() && whole.use_count() == 2 && whole.storage().use_count() == 1;
    if (!own) {
      const Tensor before = std::exchange(whole, zeros_laid_out_as(base));
      if (before.defined()) copy_elements(whole, before);
    }
    if (should_record(tangent))
      whole = replace_strided_region(whole, StridedRegion(whole), StridedRegion(same_view(x, base, whole)), tangent);
    else
      copy_elements(same_view(x, base, whole), tangent);
  }
  keep_tangent(base, std::move(whole));
}

void detail::drop_tangent_at_exit(const Tensor& x) { dropped_at_exit().emplace_back(x.impl_ptr()); }

void detail::remember_tangents(Node& node, Span<const Tensor*> inputs) {
  std::vector<Tensor> tangents;
  bool any = false;
  for (const Tensor* input : inputs) {
    tangents.push_back(tangent_of(*input));
    any |= tangents.back().defined();
  }
  if (any) node.extras().tangents = std::move(tangents);
}

bool detail::carry_tangents(Node& node, Span<Tensor> outs) {
  bool has_edge = false;
  for (size_t i = 0; i < node.num_edges(); ++i) has_edge |= node.edge(i).defined();
  const std::vector<Tensor> tangents =
      node.extras_or_null() ? std::move(node.extras().tangents) : std::vector<Tensor>();
  if (tangents.empty()) return has_edge;
  const ForwardModeGuard no_tangents(false);
  std::vector<Tensor> carried;
  if (!node.jvp(tangents, carried)) carried = transposed(node, outs, tangents, has_edge);
  for (size_t i = 0; i < outs.size(); ++i) {
    const Tensor& out = outs[i];
    if (!out.defined() || !out.is_differentiable()) continue;
    set_tangent(out, carried[i].defined() ? carried[i] : zeros_laid_out_as(out));
  }
  // Saved outputs carry it too, for the tangents of gradients.
  if (has_edge)
    for (SavedTensor* saved : node.saved()) saved->carry_tangent(outs);
  return has_edge;
}

void detail::check_no_tangents(const BackwardCall& call) {
  if (!forward_mode_enabled()) return;
  for (size_t i = 0; i < call.node().num_outputs(); ++i)
    if (tangent_of(call.grad(i)).defined()) refuse(call.node());
}

Tensor make_dual(const Tensor& x, const Tensor& tangent) {
  check_defined("make_dual", x, "tensor");
  check_defined("make_dual", tangent, "tangent");
  TERCEL_CHECK(t_level != 0, RuntimeError,
               "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() "
               "first.");
  TERCEL_CHECK(x.is_differentiable(), ValueError,
               "Expected primal to be floating point or complex, but got: ", to_string(x.dtype()));
  TERCEL_CHECK(tangent.is_differentiable(), ValueError,
               "Expected tangent to be floating point or complex, but got: ", to_string(tangent.dtype()));
  constexpr const char* kOtherSizes =
      "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
      "supported. Tensor is of size ";
  TERCEL_CHECK(x.sizes() == tangent.sizes(), RuntimeError, kOtherSizes, x.sizes(),
               " while the given forward gradient is of size ", tangent.sizes(), ".");
  TERCEL_CHECK(x.dtype() == tangent.dtype(), RuntimeError, "Expected forward gradient of dtype ", to_string(x.dtype()),
               ", that of the original Tensor, but got ", to_string(tangent.dtype()));
  TERCEL_CHECK(x.device() == tangent.device(), RuntimeError, "Expected forward gradient on ", to_string(x.device()),
               ", the device of the original Tensor, but got ", to_string(tangent.device()));
  Tensor out = alias("MakeDualBackward0", x);
  detail::set_tangent(out, tangent);
  return out;
}

Dual unpack_dual(const Tensor& x) {
  check_defined("unpack_dual", x, "tensor");
  return {alias("FwPrimalBackward0", x), detail::tangent_of(x)};
}

}  // namespace tercel
