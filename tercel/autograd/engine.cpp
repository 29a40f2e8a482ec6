// Runs a graph backwards.
//
// Note [Backward pass]
// First the nodes that can be reached from the roots are counted: a node is ready once every node that feeds it has
// run. Ready nodes run in descending order of sequence numbers, so that the last op recorded comes first, on the
// calling thread; ops themselves are parallel. Per-node data of a pass is in a per-thread scratch buffer that keeps its
// memory; a nested pass (a hook that calls backward) takes the next scratch. So passes on different threads share only
// the leaves, whose gradients are guarded by a mutex.
//
// Note [Targets]
// A pass with targets marks the nodes from which a target can be reached, and runs neither backward nor hooks of other
// nodes.
//
// Note [Creating a graph]
// Backward functions are ordinary ops. If a pass creates a graph, it runs them with gradients on, so that their results
// have a history; sums of gradients are then recorded too, and change nothing in place.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include "tercel/autograd/anomaly.h"
#include "tercel/autograd/autograd.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/leaf_node_impl.h"
#include "tercel/core/generator.h"
#include "tercel/util/profile.h"
#include "tercel/util/thread_impl.h"

namespace tercel {

namespace {

/** State of a node in a pass. */
struct Task {
  Node* node = nullptr;  // kept alive by the roots, or by `owner`
  int64_t waiting = 0;   // edges that have not delivered yet
  size_t first = 0;      // of its num_outputs() gradients in the buffer
  bool is_target = false;
  bool is_wanted = true;   // it is a target, or one can be reached from it
  bool is_applied = true;  // a target can be reached from it
};

/** Open addressing from node to task index; keeps its memory between passes. */
class TaskMap {
 public:
  /** Index of the node's task; if it has none, inserts `fresh`. */
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
  /** Index of the node's task; SIZE_MAX if it has none. */
  size_t find(const Node* node) const {
    if (slots_.empty()) return SIZE_MAX;
    for (size_t at = hash(node);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].node == node) return slots_[at].task;
      if (!slots_[at].node) return SIZE_MAX;
    }
  }
  void clear() {
    // After an unusually large graph, later passes would otherwise clear its slots every time.
    if (slots_.size() > kManySlots && used_ * 16 < slots_.size())
      slots_ = std::vector<Slot>(kManySlots);
    else
      std::fill(slots_.begin(), slots_.end(), Slot{});
    used_ = 0;
  }

 private:
  struct Slot {
    const Node* node = nullptr;
    size_t task = 0;
  };
  static constexpr size_t kManySlots = 4096;

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
  std::vector<Gradient> buffer;    // gradients that reach each task's node
  std::vector<Gradient> outgoing;  // of the node that runs
  std::vector<uint8_t> wanted;     // its inputs whose gradients are requested
  std::vector<size_t> order;       // tasks, each after those that feed it
  std::vector<int64_t> left;       // work list while the order is computed

  void clear() {
    map.clear();
    tasks.clear();
    stack.clear();
    ready.clear();
    buffer.clear();
    outgoing.clear();
    wanted.clear();
    order.clear();
    left.clear();
  }
};

/** The scratch of this pass; each nested pass takes another. */
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

/** Arguments of a pass. */
struct Pass {
  Span<Tensor> outputs, gradients;
  /** Edges at which the requested gradients arrive; empty: all leaves. */
  Span<Edge> targets;
  /** Receives the gradient of each target instead of .grad; null: leaves accumulate. */
  Gradient* captured = nullptr;
  bool retain_graph = false;
  bool create_graph = false;
};

size_t task_of(Scratch& s, Node* node) {
  const size_t fresh = s.tasks.size();
  const size_t index = s.map.find_or_insert(node, fresh);
  if (index == fresh) {
    s.tasks.push_back({.node = node, .first = s.buffer.size()});
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

/** See Note [Targets]. */
void mark_wanted(Scratch& s, const Pass& pass) {
  for (const Edge& target : pass.targets) {
    const size_t task = s.map.find(target.node.get());
    if (task != SIZE_MAX) s.tasks[task].is_target = true;
  }
  s.left.resize(s.tasks.size());
  for (size_t i = 0; i < s.tasks.size(); ++i) {
    s.left[i] = s.tasks[i].waiting;
    if (s.left[i] == 0) s.order.push_back(i);
  }
  const auto for_each_next = [&](size_t task, auto visit) {
    const Node& node = *s.tasks[task].node;
    for (size_t i = 0; i < node.num_edges(); ++i)
      if (node.edge(i).defined()) visit(s.map.find(node.edge(i).node.get()));
  };
  for (size_t at = 0; at < s.order.size(); ++at)
    for_each_next(s.order[at], [&](size_t next) {
      if (--s.left[next] == 0) s.order.push_back(next);
    });
  for (size_t at = s.order.size(); at-- > 0;) {
    Task& task = s.tasks[s.order[at]];
    task.is_applied = false;
    for_each_next(s.order[at], [&](size_t next) { task.is_applied |= s.tasks[next].is_wanted; });
    task.is_wanted = task.is_applied || task.is_target;
    // Applying a leaf accumulates its gradient.
    if (task.node->is_leaf()) task.is_applied = task.is_target;
  }
}

/** Adds to .grad of an intermediate result. */
void leave_gradient(const weak_intrusive_ptr<TensorImpl, detail::UndefinedTensor>& weak, const Gradient& gradient) {
  auto impl = weak.lock();
  if (!impl.defined()) return;
  Gradient& kept = ensure_autograd_meta(Tensor(std::move(impl))).grad;
  // A copy: the gradient may be changed in place elsewhere.
  if (kept.defined())
    kept = add_gradients(kept, gradient);
  else
    kept = {gradient.is_rows() ? gradient.values : copy_with_layout_of(gradient.values, gradient.values), gradient.rows,
            gradient.sources};
}

/** Tensor hooks of the outputs (an undefined gradient if nothing depends on one), then retained
 * gradients. */
void run_output_hooks(Node& node, Gradient* incoming) {
  const NodeExtras* extras = node.extras_or_null();
  for (uint32_t i = 0; i < node.num_outputs(); ++i) {
    if (extras) {
      extras->tensor_hooks.for_each(i, [&](const TensorHook& hook) { run_hook(hook, incoming[i], node.name()); });
      for (const NodeExtras::Retained& retained : extras->retained)
        if (retained.output_nr == i && incoming[i].defined()) leave_gradient(retained.tensor, incoming[i]);
    }
    if (node.is_leaf()) static_cast<LeafNode&>(node).run_leaf_hooks(incoming[i]);
  }
}

/** Rows as a COO gradient, which hooks take; `to` is the node they reach, a leaf's. */
void to_coo_of_leaf(Gradient& gradient, const Node* to) {
  if (gradient.is_rows() && to && to->is_leaf())
    gradient = to_coo(std::move(gradient), static_cast<const LeafNode*>(to)->leaf().sizes());
}

std::vector<Tensor> tensors_of(const Node& node, Span<Gradient> gradients) {
  std::vector<Tensor> out;
  for (const Gradient& g : gradients) {
    TERCEL_CHECK(!g.is_rows(), NotImplementedError, "hook on ", node.name(), ": hooks do not support row gradients");
    out.push_back(g.values);
  }
  return out;
}

void replace(const Node& node, Span<Tensor> by, Gradient* gradients, size_t count) {
  TERCEL_CHECK(by.size() == count, RuntimeError, "hook on ", node.name(), " returned ", by.size(),
               " gradients instead of ", count);
  for (size_t i = 0; i < count; ++i) gradients[i] = {by[i], {}};
}

void run_pre_hooks(const Node& node, const NodeExtras& extras, Gradient* incoming) {
  const size_t count = node.num_outputs();
  if (node.is_leaf() && !extras.pre_hooks.empty()) to_coo_of_leaf(incoming[0], &node);
  extras.pre_hooks.for_each(0, [&](const NodePreHook& hook) {
    if (const auto by = hook(tensors_of(node, {incoming, count}))) replace(node, *by, incoming, count);
  });
}

void run_post_hooks(const Node& node, const NodeExtras& extras, Gradient* outgoing, const std::vector<Tensor>& given) {
  const size_t count = node.num_edges();
  if (!extras.post_hooks.empty())
    for (size_t i = 0; i < count; ++i) to_coo_of_leaf(outgoing[i], node.edge(i).node.get());
  extras.post_hooks.for_each(0, [&](const NodePostHook& hook) {
    if (const auto by = hook(tensors_of(node, {outgoing, count}), given)) replace(node, *by, outgoing, count);
  });
}

bool has_any(const Node& node, const Gradient* incoming) {
  for (uint32_t i = 0; i < node.num_outputs(); ++i)
    if (incoming[i].defined()) return true;
  return false;
}

void apply_node(Scratch& s, const Task& task, const Pass& pass) {
  Node& node = *task.node;
  const ProfileRange range(node.name(), RangeKind::Backward);
  Gradient* incoming = s.buffer.data() + task.first;
  if (node.is_leaf()) return static_cast<LeafNode&>(node).accumulate(std::move(incoming[0]));
  for (uint32_t i = 0; i < node.num_outputs(); ++i)
    TERCEL_CHECK(!incoming[i].is_rows(), NotImplementedError, node.name(),
                 ": its output is used by row lookups, and row gradients are supported for leaves only");
  if (!pass.targets.empty()) {
    s.wanted.resize(std::max(s.wanted.size(), node.num_edges()));
    for (size_t i = 0; i < node.num_edges(); ++i)
      s.wanted[i] = node.edge(i).defined() && s.tasks[s.map.find(node.edge(i).node.get())].is_wanted ? 1 : 0;
  }
  BackwardCall call(node, incoming, s.outgoing.data(), pass.targets.empty() ? nullptr : s.wanted.data());
  node.apply(call);
}

thread_local Node* t_running = nullptr;

/** apply_node() with hooks and anomaly mode. */
[[gnu::noinline]] void apply_watched(Scratch& s, const Task& task, const Pass& pass) {
  Node& node = *task.node;
  const NodeExtras* extras = node.extras_or_null();
  std::vector<Tensor> given;
  struct Running {
    Node* outer;
    explicit Running(Node* inner) : outer(std::exchange(t_running, inner)) {}
    ~Running() { t_running = outer; }
  } running(&node);
  Gradient* incoming = s.buffer.data() + task.first;
  if (extras) {
    run_pre_hooks(node, *extras, incoming);
    if (node.is_leaf() && !extras->post_hooks.empty()) to_coo_of_leaf(incoming[0], &node);
    if (!extras->post_hooks.empty()) given = tensors_of(node, {incoming, node.num_outputs()});
  }
  try {
    // The node may be part of the pass for its hooks only.
    if (node.is_leaf() || node.runs_without_gradients() || has_any(node, incoming)) apply_node(s, task, pass);
    if (anomaly_enabled() && anomaly_checks_nan()) detail::check_nan(node, {s.outgoing.data(), node.num_edges()});
  } catch (...) {
    if (anomaly_enabled()) detail::report_anomaly(node);
    throw;
  }
  if (extras) run_post_hooks(node, *extras, s.outgoing.data(), given);
}

/**
 * Without any gradient, an op's node passes none on and a leaf keeps its own; hooks and user functions see
 * undefined gradients.
 */
bool sees_nothing(const Node& node) {
  return !node.is_leaf() && (node.extras_or_null() || node.runs_without_gradients());
}

void run_node(Scratch& s, const Task& task, const Pass& pass) {
  Node& node = *task.node;
  Gradient* incoming = s.buffer.data() + task.first;
  s.outgoing.resize(std::max(s.outgoing.size(), node.num_edges()));
  if (task.is_wanted && (has_any(node, incoming) || sees_nothing(node))) {
    if (node.extras_or_null() || node.is_leaf()) run_output_hooks(node, incoming);
    if (pass.captured && task.is_target)
      for (size_t t = 0; t < pass.targets.size(); ++t)
        if (pass.targets[t].node.get() == &node) pass.captured[t] = incoming[pass.targets[t].output_nr];
    if (task.is_applied && !(node.is_leaf() && pass.captured)) {
      if (node.extras_or_null() || anomaly_enabled()) [[unlikely]]
        apply_watched(s, task, pass);
      else
        apply_node(s, task, pass);
      if (!pass.retain_graph) node.release_saved();
    }
  }
  for (uint32_t i = 0; i < node.num_outputs(); ++i) s.buffer[task.first + i] = {};
}

/** The initial gradient of output i. */
Tensor seed_of(const Pass& pass, size_t i) {
  const Tensor& out = pass.outputs[i];
  Tensor gradient = pass.gradients.empty() ? Tensor() : pass.gradients[i];
  if (!gradient.defined()) {
    TERCEL_CHECK(out.numel() == 1, RuntimeError, "grad can be implicitly created only for scalar outputs");
    gradient = empty(out.sizes(), out.options());
    visit_differentiable_types("backward", out.dtype(), [&]<class T> { *gradient.data<T>() = T(1.0f); });
  }
  TERCEL_CHECK(gradient.sizes() == out.sizes() && gradient.dtype() == out.dtype(), RuntimeError,
               "Mismatch in shape: grad_output[", i, "] is ", describe(gradient), " and output[", i, "] is ",
               describe(out));
  return gradient;
}

/** The innermost pass running on this thread. */
struct RunningPass {
  const Pass* pass;
  const Scratch* scratch;
  int64_t number;
  std::vector<Callable<void()>> callbacks = {};
};
thread_local RunningPass* t_pass = nullptr;
thread_local int t_depth = 0;  // nesting depth of passes on this thread
std::atomic<int64_t> g_passes{0};

void run_here(const Pass& pass);

/** Nested passes consume stack: from kDeepest levels on, a pass continues on a new thread. */
void run(const Pass& pass) {
  constexpr int kDeepest = 60;
  if (t_depth < kDeepest) return run_here(pass);
  std::exception_ptr error;
  Thread([&, inference = detail::t_inference_mode, hooks = detail::t_saved_tensor_hooks,
          draws = detail::t_draw_scopes] {
    detail::t_inference_mode = inference;
    detail::t_saved_tensor_hooks = hooks;
    detail::t_draw_scopes = draws;
    try {
      run_here(pass);
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

void run_here(const Pass& pass) {
  TERCEL_CHECK(pass.gradients.empty() || pass.gradients.size() == pass.outputs.size(), RuntimeError,
               "backward: ", pass.gradients.size(), " gradients for ", pass.outputs.size(), " tensors");
  const GradModeGuard grad_mode(pass.create_graph);
  ScratchLease lease;
  Scratch& s = *lease;
  RunningPass now{&pass, &s, g_passes.fetch_add(1, std::memory_order_relaxed)};
  struct Running {
    RunningPass* outer;
    explicit Running(RunningPass* inner) : outer(std::exchange(t_pass, inner)) { ++t_depth; }
    ~Running() {
      t_pass = outer;
      --t_depth;
    }
  } running(&now);
  // Owns the roots; edges own everything else.
  SmallVector<Node*, 4> held;
  struct Release {
    SmallVector<Node*, 4>& nodes;
    ~Release() {
      for (Node* n : nodes) intrusive_ptr<Node>::reclaim(n).reset();
    }
  } release{held};

  for (size_t i = 0; i < pass.outputs.size(); ++i) {
    const Tensor& out = pass.outputs[i];
    Edge edge = out.defined() ? gradient_edge(out) : Edge{};
    TERCEL_CHECK(edge.defined(), RuntimeError, "element ", i,
                 " of tensors does not require grad and does not have a grad_fn");
    Tensor gradient = seed_of(pass, i);
    Node* node = edge.node.get();
    held.push_back(edge.node.release());
    const size_t task = task_of(s, node);
    Gradient& seed = s.buffer[s.tasks[task].first + edge.output_nr];
    seed = add_gradients(std::move(seed), Gradient{std::move(gradient), {}});
  }
  count_dependencies(s);
  if (!pass.targets.empty()) mark_wanted(s, pass);
  for (Node* root : held) {
    const size_t task = s.map.find(root);
    // A root that is reachable from another root becomes ready later; a root given twice is entered once.
    if (s.tasks[task].waiting == 0) {
      s.tasks[task].waiting = -1;
      make_ready(s, task);
    }
  }
  while (!s.ready.empty()) {
    const Task task = s.tasks[take_ready(s)];
    run_node(s, task, pass);
    for (size_t i = 0; i < task.node->num_edges(); ++i) {
      const Edge& edge = task.node->edge(i);
      Gradient out = std::move(s.outgoing[i]);
      s.outgoing[i] = {};
      if (!edge.defined()) continue;
      const size_t next = s.map.find(edge.node.get());
      if (out.defined()) {
        Gradient& sum = s.buffer[s.tasks[next].first + edge.output_nr];
        sum = add_gradients(std::move(sum), std::move(out));
      }
      if (--s.tasks[next].waiting == 0) make_ready(s, next);
    }
  }
  // A callback may queue another.
  for (size_t i = 0; i < now.callbacks.size(); ++i) Callable<void()>(now.callbacks[i])();
}

Tensor zeros_like_gradient(const Tensor& input) {
  Tensor out = empty(input.sizes(), TensorOptions(input.dtype(), input.device()));
  if (out.numel() > 0) std::memset(out.data_ptr(), 0, out.nbytes());
  return out;
}

/** The edge at which a requested tensor's gradient arrives. */
Edge target_edge(const Tensor& input) {
  Edge edge = input.defined() ? gradient_edge(input) : Edge{};
  TERCEL_CHECK(edge.defined(), RuntimeError, "One of the differentiated Tensors does not require grad");
  return edge;
}

}  // namespace

bool detail::pass_has_targets() { return t_pass && !t_pass->pass->targets.empty(); }
int64_t detail::current_pass() { return t_pass ? t_pass->number : -1; }
Node* detail::running_node() { return t_running; }
detail::NodeFate detail::fate_in_pass(const Node& node) {
  if (!t_pass) return NodeFate::Skipped;
  const size_t task = t_pass->scratch->map.find(&node);
  if (task == SIZE_MAX || !t_pass->scratch->tasks[task].is_wanted) return NodeFate::Skipped;
  return node.is_leaf() && t_pass->pass->captured ? NodeFate::Captured : NodeFate::Runs;
}
void detail::queue_callback(Callable<void()> callback) {
  TERCEL_CHECK(t_pass != nullptr, RuntimeError, "Final callbacks can only be installed during backward pass.");
  t_pass->callbacks.push_back(std::move(callback));
}

void backward(Span<Tensor> outputs, Span<Tensor> gradients, std::optional<bool> retain_graph, bool create_graph,
              Span<Tensor> inputs) {
  std::vector<Edge> targets;
  for (const Tensor& input : inputs) {
    if (input.defined() && !input.is_leaf()) retain_grad(input);
    targets.push_back(target_edge(input));
  }
  run({outputs, gradients, targets, nullptr, retain_graph.value_or(create_graph), create_graph});
}

std::vector<Gradient> grad(Span<Tensor> outputs, Span<Tensor> inputs, Span<Tensor> gradients,
                           std::optional<bool> retain_graph, bool create_graph, std::optional<bool> allow_unused,
                           bool materialize_grads) {
  TERCEL_CHECK(!inputs.empty(), ValueError, "grad requires non-empty inputs.");
  TERCEL_CHECK(!materialize_grads || allow_unused.value_or(true), ValueError,
               "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
               "allow_unused=False.");
  std::vector<Edge> targets;
  for (const Tensor& input : inputs) targets.push_back(target_edge(input));
  std::vector<Gradient> out(inputs.size());
  run({outputs, gradients, targets, out.data(), retain_graph.value_or(create_graph), create_graph});
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].defined()) continue;
    if (materialize_grads)
      out[i].values = zeros_like_gradient(inputs[i]);
    else
      TERCEL_CHECK(allow_unused.value_or(false), RuntimeError,
                   "One of the differentiated Tensors appears to not have been used in the graph. Set "
                   "allow_unused=True if this is the desired behavior.");
  }
  return out;
}

}  // namespace tercel
