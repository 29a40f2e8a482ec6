// Runs a graph backwards.
//
// Note [Backward pass]
// First the nodes that can be reached from the roots are counted: a node is ready once every node that feeds it has
// run. Ready nodes run in the order of falling sequence numbers, so that the last op recorded comes first, on the
// calling thread; ops themselves are parallel. What a pass keeps per node lies in a scratch of the thread that keeps
// its memory, and a pass inside a pass (a hook that calls backward) takes the next scratch. So passes on different
// threads share nothing but the leaves, whose sums are guarded by a mutex.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/leaf_node_impl.h"

namespace tercel {

namespace {

std::mutex g_leaf_mutex;

/** What a pass knows of a node. */
struct Task {
  Node* node = nullptr;  // kept alive by the roots, or by `owner`
  int64_t waiting = 0;   // edges that have not delivered yet
  size_t first = 0;      // of its num_outputs() gradients in the buffer
};

/** Open addressing from node to task index; keeps its memory between passes. */
class TaskMap {
 public:
  /** Index of the node's task, or the given one, entered now. */
  size_t find_or_insert(const Node* node, size_t fresh) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    for (size_t at = hash(node);; at = (at + 1) & (slots_.size() - 1)) {
      if (!slots_[at].node) {
        slots_[at] = {node, fresh};
        ++used_;
        return fresh;
      }
      if (slots_[at].node == node) return slots_[at].task;
    }
  }
  void clear() {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    used_ = 0;
  }

 private:
  struct Slot {
    const Node* node = nullptr;
    size_t task = 0;
  };
  size_t hash(const Node* node) const {
    return (reinterpret_cast<uintptr_t>(node) >> 4) * 0x9E3779B97F4A7C15u >> 17 & (slots_.size() - 1);
  }
  void grow() {
    std::vector<Slot> old(std::max<size_t>(64, 2 * slots_.size()));
    old.swap(slots_);
    used_ = 0;
    for (const Slot& s : old)
      if (s.node) find_or_insert(s.node, s.task);
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

struct Scratch {
  TaskMap map;
  std::vector<Task> tasks;
  std::vector<size_t> stack;       // tasks whose edges have not been followed yet
  std::vector<size_t> ready;       // heap by sequence
  std::vector<Gradient> buffer;    // what reaches each task's node
  std::vector<Gradient> outgoing;  // of the node that runs

  void clear() {
    map.clear();
    tasks.clear();
    stack.clear();
    ready.clear();
    buffer.clear();
    outgoing.clear();
  }
};

/** The scratch of this pass; one more for each pass inside a pass. */
class ScratchLease {
 public:
  ScratchLease() {
    Pool& p = pool();
    if (p.depth == p.scratches.size()) p.scratches.push_back(std::make_unique<Scratch>());
    scratch_ = p.scratches[p.depth++].get();
  }
  ~ScratchLease() {
    scratch_->clear();
    --pool().depth;
  }
  ScratchLease(const ScratchLease&) = delete;
  ScratchLease& operator=(const ScratchLease&) = delete;
  Scratch& operator*() const { return *scratch_; }

 private:
  struct Pool {
    std::vector<std::unique_ptr<Scratch>> scratches;
    size_t depth = 0;
  };
  static Pool& pool() {
    static thread_local Pool p;
    return p;
  }
  Scratch* scratch_;
};

/** A gradient that grad() asks for: what reaches input `output_nr` of a node. */
struct Capture {
  Edge edge;
  Gradient gradient;
};

size_t task_of(Scratch& s, Node* node) {
  const size_t fresh = s.tasks.size();
  const size_t index = s.map.find_or_insert(node, fresh);
  if (index == fresh) {
    s.tasks.push_back({node, 0, s.buffer.size()});
    s.buffer.resize(s.buffer.size() + node->num_outputs());
    s.stack.push_back(index);
  }
  return index;
}

void count_dependencies(Scratch& s) {
  while (!s.stack.empty()) {
    Node* node = s.tasks[s.stack.back()].node;
    s.stack.pop_back();
    for (size_t i = 0; i < node->num_edges(); ++i)
      if (Node* next = node->edge(i).node.get()) ++s.tasks[task_of(s, next)].waiting;
  }
}

struct EarlierSequence {
  const Scratch& s;
  bool operator()(size_t a, size_t b) const { return s.tasks[a].node->sequence() < s.tasks[b].node->sequence(); }
};

void make_ready(Scratch& s, size_t task) {
  s.ready.push_back(task);
  std::push_heap(s.ready.begin(), s.ready.end(), EarlierSequence{s});
}

size_t take_ready(Scratch& s) {
  std::pop_heap(s.ready.begin(), s.ready.end(), EarlierSequence{s});
  const size_t task = s.ready.back();
  s.ready.pop_back();
  return task;
}

void run_node(Scratch& s, const Task& task, Span<Capture*> captures, bool retain_graph) {
  Node& node = *task.node;
  Gradient* incoming = s.buffer.data() + task.first;
  bool any = false;
  for (uint32_t i = 0; i < node.num_outputs(); ++i) {
    if (!incoming[i].defined()) continue;
    any = true;
    if (node.has_hooks()) node.run_hooks(i, incoming[i]);
    if (node.is_leaf()) static_cast<LeafNode&>(node).run_leaf_hooks(incoming[i]);
    for (Capture* c : captures)
      if (c->edge.node.get() == &node && c->edge.output_nr == i) c->gradient = incoming[i];
  }
  s.outgoing.resize(std::max(s.outgoing.size(), node.num_edges()));
  if (any && node.is_leaf()) {
    if (captures.empty()) static_cast<LeafNode&>(node).accumulate(std::move(incoming[0]));
  } else if (any) {
    for (uint32_t i = 0; i < node.num_outputs(); ++i)
      TERCEL_CHECK(!incoming[i].is_rows(), NotImplementedError, node.name(),
                   ": its output is looked up by rows, and gradients of rows end at leaves");
    BackwardCall call(node, incoming, s.outgoing.data());
    node.apply(call);
    if (!retain_graph) node.release_saved();
  }
  for (uint32_t i = 0; i < node.num_outputs(); ++i) s.buffer[task.first + i] = {};
}

void run(Span<Tensor> outputs, Span<Tensor> gradients, Span<Capture*> captures, bool retain_graph) {
  TERCEL_CHECK(gradients.empty() || gradients.size() == outputs.size(), ValueError, "backward: ", gradients.size(),
               " gradients for ", outputs.size(), " tensors");
  const NoGradGuard no_grad;
  ScratchLease lease;
  Scratch& s = *lease;
  // Holds the roots; everything else is held by edges.
  SmallVector<Node*, 4> held;
  struct Release {
    SmallVector<Node*, 4>& nodes;
    ~Release() {
      for (Node* n : nodes) intrusive_ptr<Node>::reclaim(n).reset();
    }
  } release{held};

  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& out = outputs[i];
    Edge edge = out.defined() ? gradient_edge(out) : Edge{};
    TERCEL_CHECK(edge.defined(), ValueError, "element ", i,
                 " of tensors does not require grad and does not have a grad_fn");
    Tensor gradient = gradients.empty() ? Tensor() : gradients[i];
    if (!gradient.defined()) {
      TERCEL_CHECK(out.numel() == 1, ValueError, "grad can be implicitly created only for scalar outputs");
      gradient = empty(out.sizes(), out.options());
      visit_floating_types("backward", out.dtype(), [&]<class T> { *gradient.data<T>() = T(1.0f); });
    }
    TERCEL_CHECK(gradient.sizes() == out.sizes() && gradient.dtype() == out.dtype(), ValueError,
                 "Mismatch in shape: grad_output[", i, "] is ", describe(gradient), " and output[", i, "] is ",
                 describe(out));
    Node* node = edge.node.get();
    held.push_back(edge.node.release());
    const size_t task = task_of(s, node);
    Gradient& seed = s.buffer[s.tasks[task].first + edge.output_nr];
    seed = add_gradients(std::move(seed), Gradient{std::move(gradient), {}});
  }
  count_dependencies(s);
  for (Node* root : held) {
    const size_t task = s.map.find_or_insert(root, SIZE_MAX);
    // A root that another root's graph feeds becomes ready in its turn; one given twice is entered once.
    if (s.tasks[task].waiting == 0) {
      s.tasks[task].waiting = -1;
      make_ready(s, task);
    }
  }
  while (!s.ready.empty()) {
    const Task task = s.tasks[take_ready(s)];
    run_node(s, task, captures, retain_graph);
    for (size_t i = 0; i < task.node->num_edges(); ++i) {
      const Edge& edge = task.node->edge(i);
      Gradient out = std::move(s.outgoing[i]);
      s.outgoing[i] = {};
      if (!edge.defined()) continue;
      const size_t next = s.map.find_or_insert(edge.node.get(), SIZE_MAX);
      if (out.defined()) {
        Gradient& sum = s.buffer[s.tasks[next].first + edge.output_nr];
        sum = add_gradients(std::move(sum), std::move(out));
      }
      if (--s.tasks[next].waiting == 0) make_ready(s, next);
    }
  }
}

}  // namespace

void LeafNode::run_leaf_hooks(Gradient& gradient) const {
  if (const auto& hooks = autograd_meta(leaf_)->leaf_hooks)
    for (const GradientHookPtr& hook : *hooks) run_hook(*hook, gradient, "a leaf");
}

void LeafNode::accumulate(Gradient gradient) {
  const std::scoped_lock lock(g_leaf_mutex);
  Gradient& sum = autograd_meta(leaf_)->grad;
  if (sum.defined() && !sum.is_rows() && !gradient.is_rows()) {
    // In place: the leaf's gradient may be part of an arena.
    accumulate_dense(sum.values, gradient.values);
    sum.values.impl().bump_version();
    return;
  }
  // A gradient that is somebody else's too must not be changed by later sums.
  const bool shared =
      gradient.values.use_count() > 1 || gradient.values.storage().use_count() > 1 || !gradient.values.is_contiguous();
  if (!sum.defined() && shared && !gradient.is_rows()) gradient.values = dense_copy(gradient.values);
  sum = add_gradients(std::move(sum), std::move(gradient));
}

void backward(Span<Tensor> outputs, Span<Tensor> gradients, bool retain_graph) {
  run(outputs, gradients, {}, retain_graph);
}

std::vector<Gradient> grad(Span<Tensor> outputs, Span<Tensor> inputs, Span<Tensor> gradients, bool retain_graph) {
  TERCEL_CHECK(!inputs.empty(), ValueError, "grad: no inputs");
  std::vector<Capture> captures(inputs.size());
  std::vector<Capture*> pointers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    captures[i].edge = gradient_edge(inputs[i]);
    TERCEL_CHECK(captures[i].edge.defined(), ValueError, "grad: input ", i, " does not require grad");
    pointers.push_back(&captures[i]);
  }
  run(outputs, gradients, pointers, retain_graph);
  std::vector<Gradient> out;
  for (Capture& c : captures) out.push_back(std::move(c.gradient));
  return out;
}

}  // namespace tercel
