// Autograd metadata of a tensor.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "tercel/autograd/node.h"

namespace tercel {

class TERCEL_API AutogradMeta final : public AutogradMetaBase {
 public:
  ~AutogradMeta() override;

  Gradient grad;
  intrusive_ptr<Node> grad_fn;
  /** The node that accumulates a leaf's gradient; it owns the leaf, so the leaf refers to it weakly. */
  weak_intrusive_ptr<Node> leaf_node;
  Tensor base;  ///< of a view
  /** Rarely needed fields. */
  struct Extras {
    // Hooks of a leaf; those of an op's result are kept by its node.
    HookList<TensorHook> on_gradient;
    HookList<LeafHook> after_accumulation;
    /** Whether retain_grad() was called, and the node that stores the gradient here. */
    bool retains_grad = false;
    weak_intrusive_ptr<Node> retaining_node;
    /** Forward mode's tangent, valid in the dual level with that unique number. */
    Tensor tangent;
    uint64_t tangent_level = 0;
  };
  std::unique_ptr<Extras> extras;
  uint32_t output_nr = 0;
  /**
   * Version of a view's data when grad_fn was made; if the data is newer, grad_fn is rebuilt from the base. Threads
   * that share a view may do so concurrently: this is written last, see refresh_view_history().
   */
  std::atomic<uint32_t> view_version{0};

  /** Creates them if missing. */
  Extras& ensure_extras() {
    if (!extras) extras = std::make_unique<Extras>();
    return *extras;
  }
  /** After grad_fn of `self` has changed: the new node stores the retained gradient here instead of the old one. */
  void move_retained_gradient(const Tensor& self);

  static void* operator new(size_t size) { return detail::allocate_object(size); }
  static void operator delete(void* p) { detail::free_object(p, sizeof(AutogradMeta)); }
};

/** The metadata, or null when the tensor has none. */
inline AutogradMeta* autograd_meta(const Tensor& t) { return static_cast<AutogradMeta*>(t.impl().autograd_meta()); }
/** The metadata, created if missing. */
TERCEL_API AutogradMeta& ensure_autograd_meta(const Tensor& t);

/** The op that made the tensor; null for a leaf. Brings a view's history up to date with its base. */
TERCEL_API intrusive_ptr<Node> grad_fn(const Tensor& t);
/** The edge that the tensor's gradient is sent along; undefined if it requires none. */
TERCEL_API Edge gradient_edge(const Tensor& t);
/** The tensor that this one views; undefined if it is not a view. */
TERCEL_API Tensor view_base(const Tensor& t);

namespace detail {
/** Guards lazily created metadata of a tensor; tensors share mutexes. */
std::mutex& shared_mutex(const Tensor& t);
/** The view of `other` that corresponds to `view` of `base`; `other` has the layout of `base`. */
Tensor same_view(const Tensor& view, const Tensor& base, const Tensor& other);
/** Rebuilds a view's grad_fn if its base's history has changed since. Thread-safe. */
void refresh_view_history(const Tensor& t);
}  // namespace detail

}  // namespace tercel
