// The graph that backward() traverses: one node per recorded op.
//
// Note [Edges]
// A node represents an op's backward. It receives the gradients of the op's outputs and sends the gradients of the op's
// inputs along its edges. Edge i leads to the node that made input i, and holds the input's index among that node's
// outputs. A leaf that requires a gradient is represented by a LeafNode, which accumulates its gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "tercel/autograd/gradient.h"
#include "tercel/autograd/hooks.h"
#include "tercel/autograd/saved_tensor.h"
#include "tercel/core/intrusive_ptr.h"

namespace tercel {

class Node;

struct Edge {
  intrusive_ptr<Node> node;
  uint32_t output_nr = 0;

  bool defined() const { return node.defined(); }
};

/** Arguments of a backward function: gradients of the outputs in, gradients of the inputs out. */
class TERCEL_API BackwardCall {
 public:
  /**
   * `wanted`, one for each input, marks the inputs whose gradients are needed; null: all that have an edge. `history`
   * is the history of the node's outputs if that is not the node itself.
   */
  BackwardCall(const Node& node, Gradient* incoming, Gradient* outgoing, const uint8_t* wanted = nullptr,
               const Edge* history = nullptr)
      : node_(node), incoming_(incoming), outgoing_(outgoing), wanted_(wanted), history_(history) {}

  /** Gradient of an output, always dense; undefined if nothing depends on that output. */
  const Tensor& grad(size_t output = 0) const { return incoming_[output].values; }
  /** Moves the gradient out, so that its memory may be reused. */
  Tensor take(size_t output = 0) { return std::move(incoming_[output].values); }
  /** Whether the gradient of an input is needed. */
  bool needs(size_t input) const;
  void set(size_t input, Tensor gradient) { outgoing_[input].values = std::move(gradient); }
  void set(size_t input, Gradient gradient) { outgoing_[input] = std::move(gradient); }
  /** The gradient passed to set(). */
  Gradient& result(size_t input) { return outgoing_[input]; }
  const Node& node() const { return node_; }
  const uint8_t* wanted() const { return wanted_; }
  /** The history of an output of the node. */
  Edge history(uint32_t output) const;

 private:
  const Node& node_;
  Gradient* incoming_;
  Gradient* outgoing_;
  const uint8_t* wanted_;
  const Edge* history_;
};

class TERCEL_API Node : public intrusive_ptr_target {
 public:
  Node(const char* op_name, uint32_t outputs, size_t inputs, bool is_leaf = false);
  ~Node() override;

  /** Computes the gradients of the inputs. RuntimeError if saved tensors were freed or changed. */
  virtual void apply(BackwardCall& call) = 0;
  /** Frees saved tensors; if there were any, apply() is an error afterwards. */
  virtual void release_saved() {}
  /** The saved tensors in the order of the function's members, undefined ones too. RuntimeError if they were freed. */
  virtual std::vector<SavedTensor*> saved() { return {}; }
  /**
   * Computes the outputs' tangents from those of the inputs (undefined: none) if the op has its own formula; false: it
   * has none, and they are derived from apply(). See forward_mode.h.
   */
  virtual bool jvp(Span<Tensor> tangents, std::vector<Tensor>& out) {
    (void)tangents, (void)out;
    return false;
  }
  /** Whether apply() is called even if no output has a gradient. */
  virtual bool runs_without_gradients() const { return false; }
  /** Whether it is a LeafNode. */
  bool is_leaf() const { return is_leaf_; }

  /** "MulBackward0". */
  const char* name() const { return name_; }
  /** Increases with the order of recording on a thread; later nodes run first. */
  uint64_t sequence() const { return sequence_; }
  uint32_t num_outputs() const { return num_outputs_; }
  size_t num_edges() const { return num_edges_; }
  Edge& edge(size_t i) { return edges()[i]; }
  const Edge& edge(size_t i) const { return const_cast<Node*>(this)->edges()[i]; }

  /** Runs before the node's backward, and may replace the gradients of its outputs. */
  HookHandle register_prehook(NodePreHook hook) { return extras().pre_hooks.add(std::move(hook)); }
  /** Runs after the node's backward, and may replace the gradients of its inputs. */
  HookHandle register_hook(NodePostHook hook) { return extras().post_hooks.add(std::move(hook)); }
  /** Hooks and other rare fields, created if missing. */
  NodeExtras& extras() {
    if (!extras_) extras_ = std::make_unique<NodeExtras>();
    return *extras_;
  }
  const NodeExtras* extras_or_null() const { return extras_.get(); }

 protected:
  /** The name must live as long as the node. */
  void set_name(const char* name) { name_ = name; }
  /** Must be called before the node is part of a graph. */
  void set_num_outputs(uint32_t outputs) { num_outputs_ = outputs; }

 private:
  static constexpr size_t kInlineEdges = 3;
  Edge* edges() { return heap_ ? heap_ : inline_; }

  /** Destroys a long graph iteratively, not by recursion. */
  void release_edges();

  const char* name_;
  uint64_t sequence_;
  uint32_t num_outputs_;
  uint32_t num_edges_ : 31;
  uint32_t is_leaf_ : 1;
  Edge inline_[kInlineEdges];
  Edge* heap_ = nullptr;  // owned; from the caches of small objects
  std::unique_ptr<NodeExtras> extras_;
};

namespace detail {
[[noreturn]] TERCEL_API void refuse_second_backward();
/** Whether the pass running on this thread computes gradients of given tensors instead of all leaves. */
TERCEL_API bool pass_has_targets();
/** Unique number of the pass running on this thread; -1 if none. */
TERCEL_API int64_t current_pass();
enum class NodeFate : uint8_t { Skipped, Runs, Captured };
/** What the pass running on this thread does with the node; Captured: a leaf whose gradient grad() returns. */
TERCEL_API NodeFate fate_in_pass(const Node& node);
/** In anomaly mode, the node whose backward runs on this thread; else null. */
TERCEL_API Node* running_node();
/** Calls the function after the pass running on this thread has run all nodes. RuntimeError outside of a pass. */
TERCEL_API void queue_callback(Callable<void()> callback);
/** Releases a node without recursion along the graph; see Note [Long graphs]. */
TERCEL_API void release_node(intrusive_ptr<Node> node);
}  // namespace detail

/**
 * A node whose backward is a function object `void(BackwardCall&)`. If the object has saved a tensor, it is destroyed
 * after backward, and a second run is an error; one that holds only numbers can run again. See Note [What a function
 * saves].
 */
template <class F>
class FunctionNode final : public Node {
 public:
  FunctionNode(const char* op_name, uint32_t outputs, size_t inputs, F&& function) : Node(op_name, outputs, inputs) {
    const uint32_t before = detail::t_saved_moves;
    new (&function_) F(std::move(function));
    saves_ = detail::t_saved_moves != before;
  }
  ~FunctionNode() override {
    if (alive_) function_.~F();
  }

  void apply(BackwardCall& call) override {
    if (!alive_) detail::refuse_second_backward();
    function_(call);
  }
  void release_saved() override {
    if (!saves_ || !alive_) return;
    function_.~F();
    alive_ = false;
  }
  std::vector<SavedTensor*> saved() override {
    if (!alive_) detail::refuse_second_backward();
    if constexpr (std::is_copy_constructible_v<F> && !std::is_trivially_destructible_v<F>) {
      detail::SavedTensorFinder finder;
      const F copy(std::as_const(function_));
      return std::move(finder.found);
    }
    return {};
  }

  static void* operator new(size_t size) { return detail::allocate_object(size); }
  static void operator delete(void* p) { detail::free_object(p, sizeof(FunctionNode)); }

 private:
  bool alive_ = true;
  bool saves_ = false;
  union {
    F function_;
  };
};

}  // namespace tercel
