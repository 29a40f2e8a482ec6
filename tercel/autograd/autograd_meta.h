// What the autograd layer keeps with a tensor.
#pragma once

#include <memory>

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
  /** Hooks of a leaf; those of an op's result are kept by its node. */
  std::unique_ptr<std::vector<GradientHookPtr>> leaf_hooks;
  uint32_t output_nr = 0;
  /** Version of a view's data when grad_fn was made; when it has moved on, grad_fn is made anew from the base. */
  uint32_t view_version = 0;

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

}  // namespace tercel
