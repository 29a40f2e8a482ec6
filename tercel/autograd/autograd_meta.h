// What the autograd layer keeps with a tensor.
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
  /** The node that adds up a leaf's gradient; it holds the leaf, so the leaf holds it weakly. */
  weak_intrusive_ptr<Node> leaf_node;
  Tensor base;  ///< of a view
  /** What few tensors have. */
  struct Extras {
    // Hooks of a leaf; those of an op's result are kept by its node.
    HookList<TensorHook> on_gradient;
    HookList<LeafHook> after_accumulation;
    /** Whether, and which node was told that, a gradient is to be left here. */
    bool retains_grad = false;
    weak_intrusive_ptr<Node> retaining_node;
    /** In forward mode; it holds in the dual level of that number, which no other has. */
    Tensor tangent;
    uint64_t tangent_level = 0;
  };
  std::unique_ptr<Extras> extras;
  uint32_t output_nr = 0;
  /**
   * Version of a view's data when grad_fn was made; when it has moved on, grad_fn is made anew from the base. Threads
   * that share a view may find that at once: written last, see refresh_view_history().
   */
  std::atomic<uint32_t> view_version{0};

  /** Made if need be. */
  Extras& ensure_extras() {
    if (!extras) extras = std::make_unique<Extras>();
    return *extras;
  }
  /** After grad_fn of `self` has changed: the new node leaves its gradient here, the one before does not any more. */
  void move_retained_gradient(const Tensor& self);

  static void* operator new(size_t size) { return detail::allocate_object(size); }
  static void operator delete(void* p) { detail::free_object(p, sizeof(AutogradMeta)); }
};

/** The metadata, or null when the tensor has none. */
inline AutogradMeta* autograd_meta(const Tensor& t) { return static_cast<AutogradMeta*>(t.impl().autograd_meta()); }
/** The metadata, made if need be. */
TERCEL_API AutogradMeta& ensure_autograd_meta(const Tensor& t);

/** The op that made the tensor; null for a leaf. Brings a view's history up to date with its base. */
TERCEL_API intrusive_ptr<Node> grad_fn(const Tensor& t);
/** Where the tensor's gradient goes; undefined when it needs none. */
TERCEL_API Edge gradient_edge(const Tensor& t);
/** The tensor that this one views; undefined for one that is no view. */
TERCEL_API Tensor view_base(const Tensor& t);

namespace detail {
/** Guards what several threads may be the first to ask of a tensor; others share the mutex. */
std::mutex& shared_mutex(const Tensor& t);
/** The view of `other`, which is laid out as `base` is, that `view` is of base. */
Tensor same_view(const Tensor& view, const Tensor& base, const Tensor& other);
/** Makes a view's grad_fn anew when its base's history has changed since. Any thread. */
void refresh_view_history(const Tensor& t);
}  // namespace detail

}  // namespace tercel
