// Where gradients end: the node of a leaf that requires one.
#pragma once

#include <mutex>

#include "tercel/autograd/node.h"

namespace tercel {

/** Adds what reaches it to the leaf's gradient; see Note [Edges]. */
class LeafNode final : public Node {
 public:
  explicit LeafNode(Tensor leaf) : Node("AccumulateGrad", 1, 0, /*is_leaf=*/true), leaf_(std::move(leaf)) {}

  const Tensor& leaf() const { return leaf_; }
  void apply(BackwardCall& call) override { static_cast<void>(call); }
  void run_leaf_hooks(Gradient& gradient) const;
  /** Adds the gradient, as part of the graph where gradients are on, and runs the leaf's hooks; any thread. */
  void accumulate(Gradient gradient);
  /** The leaf holds the node weakly: without this, a leaf whose graph is gone would be held by the dead node. */
  void release_resources() override { leaf_ = Tensor(); }

  static void* operator new(size_t size) { return detail::allocate_object(size); }
  static void operator delete(void* p) { detail::free_object(p, sizeof(LeafNode)); }

 private:
  void add(Gradient gradient);

  Tensor leaf_;
};

}  // namespace tercel
