// The graph that backward() walks: one node per recorded op.
//
// Note [Edges]
// A node stands for an op's backward. What reaches it are the gradients of the op's outputs; what leaves it are the
// gradients of the op's inputs, along edges. Edge i leads to the node that made input i, and says which of that node's
// outputs the input was. A leaf that requires a gradient is represented by a LeafNode, which adds up what reaches it.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "tercel/autograd/gradient.h"
#include "tercel/core/intrusive_ptr.h"

namespace tercel {

class Node;

struct Edge {
  intrusive_ptr<Node> node;
  uint32_t output_nr = 0;

  bool defined() const { return node.defined(); }
};

/** Sees a gradient, and may return another to take its place; an undefined one keeps it. */
class TERCEL_API GradientHook {
 public:
  virtual ~GradientHook();
  virtual Tensor call(const Tensor& gradient) = 0;
};
using GradientHookPtr = std::unique_ptr<GradientHook>;

/** Lets a hook see, and replace, a gradient; `where` names it in the error for a gradient of rows. */
TERCEL_API void run_hook(GradientHook& hook, Gradient& gradient, const char* where);

/** What a backward function works with: gradients of the outputs in, gradients of the inputs out. */
class TERCEL_API BackwardCall {
 public:
  BackwardCall(const Node& node, Gradient* incoming, Gradient* outgoing)
      : node_(node), incoming_(incoming), outgoing_(outgoing) {}

  /** Gradient of an output; undefined when nothing depends on that output. An output's gradient is never of rows. */
  const Tensor& grad(size_t output = 0) const { return incoming_[output].values; }
  /** Takes the gradient away, so that its memory may be reused. */
  Tensor take(size_t output = 0) { return std::move(incoming_[output].values); }
  /** Whether anyone asks for the gradient of an input. */
  bool needs(size_t input) const;
  void set(size_t input, Tensor gradient) { outgoing_[input].values = std::move(gradient); }
  void set(size_t input, Gradient gradient) { outgoing_[input] = std::move(gradient); }
  const Node& node() const { return node_; }

 private:
  const Node& node_;
  Gradient* incoming_;
  Gradient* outgoing_;
};

class TERCEL_API Node : public intrusive_ptr_target {
 public:
  Node(const char* op_name, uint32_t outputs, size_t inputs);
  ~Node() override;

  /** Computes the gradients of the inputs. ValueError when what it needs was freed or changed. */
  virtual void apply(BackwardCall& call) = 0;
  /** Frees what was saved for apply(), after which apply() is an error if anything was. */
  virtual void release_saved() {}
  virtual bool is_leaf() const { return false; }

  /** "MulBackward0". */
  const char* name() const { return name_; }
  /** Grows with the order of recording on a thread; later nodes run first. */
  uint64_t sequence() const { return sequence_; }
  uint32_t num_outputs() const { return num_outputs_; }
  size_t num_edges() const { return num_edges_; }
  Edge& edge(size_t i) { return edges()[i]; }
  const Edge& edge(size_t i) const { return const_cast<Node*>(this)->edges()[i]; }

  void add_hook(uint32_t output_nr, GradientHookPtr hook);
  /** Lets the hooks of an output see (and change) its gradient. */
  void run_hooks(uint32_t output_nr, Gradient& gradient) const;
  bool has_hooks() const { return hooks_ != nullptr; }

 private:
  static constexpr size_t kInlineEdges = 3;
  Edge* edges() { return heap_ ? heap_ : inline_; }

  /** A long graph is taken apart in a loop, not by recursion. */
  void release_edges();

  struct Hook {
    uint32_t output_nr;
    GradientHookPtr function;
  };

  const char* name_;
  uint64_t sequence_;
  uint32_t num_outputs_;
  uint32_t num_edges_;
  Edge inline_[kInlineEdges];
  Edge* heap_ = nullptr;  // owned; from the caches of small objects
  std::unique_ptr<std::vector<Hook>> hooks_;
};

namespace detail {
[[noreturn]] TERCEL_API void refuse_second_backward();
}

/**
 * A node whose backward is a function object `void(BackwardCall&)`. If the object owns anything (SavedTensor), that is
 * freed after backward, and a second run is refused; one that holds only numbers can run again, and so can one that
 * could save tensors but says that it has not: saves_anything().
 */
template <class F>
class FunctionNode final : public Node {
 public:
  FunctionNode(const char* op_name, uint32_t outputs, size_t inputs, F&& function)
      : Node(op_name, outputs, inputs), function_(std::move(function)) {}
  ~FunctionNode() override {
    if (alive_) function_.~F();
  }

  void apply(BackwardCall& call) override {
    if (!alive_) detail::refuse_second_backward();
    function_(call);
  }
  void release_saved() override {
    if constexpr (!std::is_trivially_destructible_v<F>) {
      if constexpr (requires { function_.saves_anything(); })
        if (alive_ && !function_.saves_anything()) return;
      if (alive_) function_.~F();
      alive_ = false;
    }
  }

  static void* operator new(size_t size) { return detail::allocate_object(size); }
  static void operator delete(void* p) { detail::free_object(p, sizeof(FunctionNode)); }

 private:
  bool alive_ = true;
  union {
    F function_;
  };
};

}  // namespace tercel
