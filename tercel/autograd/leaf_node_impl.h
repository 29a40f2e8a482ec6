// The node that accumulates a leaf's gradient.
#pragma once

#include "tercel/autograd/node.h"

namespace tercel {

/** Adds incoming gradients to the leaf's; see Note [Edges]. */
class LeafNode final : public Node {
 public:
  explicit LeafNode(Tensor leaf) : Node("AccumulateGrad", 1, 0, /*is_leaf=*/true), leaf_(std::move(leaf)) {}

  const Tensor& leaf() const { return leaf_; }
  void apply(BackwardCall& call) override { static_cast<void>(call); }
  void run_leaf_hooks(Gradient& gradient) const;
  /** Adds the gradient, recorded if gradients are on, and runs the leaf's hooks; thread-safe. */
  void accumulate(Gradient gradient);
  /** Drops the leaf, which refers to the node weakly and would otherwise be kept by the dead node. */
  void release_resources() override { leaf_ = Tensor(); }

  static void* operator new(size_t size) { return detail::allocate_object(size); }
  static void operator delete(void* p) { detail::free_object(p, sizeof(LeafNode)); }

 private:
  void add(Gradient gradient);

  Tensor leaf_;
};

}  // namespace tercel
