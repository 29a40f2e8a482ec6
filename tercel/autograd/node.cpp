#include "tercel/autograd/node.h"

#include <memory>

#include "tercel/autograd/grad_mode.h"
#include "tercel/autograd/record.h"
#include "tercel/core/allocator.h"

namespace tercel {

namespace detail {

constinit thread_local uint8_t t_recorded [[gnu::tls_model("initial-exec")]] = TensorImpl::kGradient;

void refuse_second_backward() {
  throw_error<RuntimeError>(
      {"Trying to backward through the graph a second time (or directly access saved tensors after they have already "
       "been freed). Saved intermediate values of the graph are freed when you call .backward() or grad(). Specify "
       "retain_graph=True if you need to backward through the graph a second time."});
}

}  // namespace detail

namespace {
thread_local uint64_t t_sequence = 0;

// Note [Long graphs]
// Destroying the last node of a chain destroys the next, and so on: a graph of a million ops would overflow the stack.
// So a dying node moves its edges to a per-thread list, and a dying tensor the node that made it (a node may have saved
// a tensor that another node made); only the outermost destructor processes the list.
using NodeList = std::vector<intrusive_ptr<Node>>;
constinit thread_local NodeList* t_dying = nullptr;

/** The memory of a thread's list, kept between graphs, so that a training step does not allocate for it. */
struct KeptList {
  NodeList nodes;
  ~KeptList();
};
/** A static object that owns a graph is destroyed after the thread's own. */
constinit thread_local bool t_kept_list_is_gone = false;
KeptList::~KeptList() { t_kept_list_is_gone = true; }

template <class Fill>
void release_nodes_with(NodeList& dying, Fill fill) {
  t_dying = &dying;
  fill(dying);
  while (!dying.empty()) {
    const intrusive_ptr<Node> node = std::move(dying.back());
    dying.pop_back();
  }
  t_dying = nullptr;
}

NodeList& kept_list() {
  static thread_local KeptList kept;
  return kept.nodes;
}

/** Destroys the nodes that `fill` adds to the list, and those they lead to. */
template <class Fill>
void release_nodes(Fill fill) {
  if (t_dying) return fill(*t_dying);
  if (t_kept_list_is_gone) [[unlikely]] {
    NodeList dying;
    return release_nodes_with(dying, fill);
  }
  release_nodes_with(kept_list(), fill);
}
}  // namespace

void detail::release_node(intrusive_ptr<Node> node) {
  release_nodes([&](std::vector<intrusive_ptr<Node>>& dying) { dying.push_back(std::move(node)); });
}

bool BackwardCall::needs(size_t input) const { return wanted_ ? wanted_[input] != 0 : node_.edge(input).defined(); }

Edge BackwardCall::history(uint32_t output) const {
  if (history_) return *history_;
  return {intrusive_ptr<Node>::reclaim_copy(const_cast<Node*>(&node_)), output};
}

Node::Node(const char* op_name, uint32_t outputs, size_t inputs, bool is_leaf)
    : name_(op_name),
      sequence_(++t_sequence),
      num_outputs_(outputs),
      num_edges_(static_cast<uint32_t>(inputs) & 0x7fffffff),
      is_leaf_(is_leaf) {
  if (inputs <= kInlineEdges) return;
  heap_ = static_cast<Edge*>(detail::allocate_object(inputs * sizeof(Edge)));
  std::uninitialized_value_construct_n(heap_, inputs);
}

Node::~Node() {
  release_edges();
  if (!heap_) return;
  std::destroy_n(heap_, num_edges_);
  detail::free_object(heap_, num_edges_ * sizeof(Edge));
}

namespace {
constexpr const char* kForbidden = "Error";
}  // namespace

bool detail::is_derivative_forbidden(const Tensor& gradient) {
  const intrusive_ptr<Node> made_by = grad_fn(gradient);
  return made_by.defined() && made_by->name() == kForbidden;
}

void detail::forbid_second_derivative(BackwardCall& call) {
  const Node& node = call.node();
  for (size_t i = 0; i < node.num_edges(); ++i) {
    const Tensor& gradient = call.result(i).values;
    if (!gradient.defined()) continue;
    // It depends on the op's inputs and on the incoming gradients.
    const size_t outputs = node.num_outputs();
    auto refuse = [](BackwardCall&) {
      throw_error<RuntimeError>({"trying to differentiate twice a function that was marked with @once_differentiable"});
    };
    auto error =
        make_intrusive<FunctionNode<decltype(refuse)>>(kForbidden, 1, node.num_edges() + outputs, std::move(refuse));
    for (size_t k = 0; k < node.num_edges(); ++k) error->edge(k) = node.edge(k);
    for (size_t k = 0; k < outputs; ++k)
      if (call.grad(k).defined()) error->edge(node.num_edges() + k) = gradient_edge(call.grad(k));
    Tensor own = gradient.detach();
    set_history(own, std::move(error), 0);
    call.result(i).values = std::move(own);
  }
}

void Node::release_edges() {
  release_nodes([this](std::vector<intrusive_ptr<Node>>& dying) {
    for (size_t i = 0; i < num_edges_; ++i)
      if (edge(i).defined()) dying.push_back(std::move(edge(i).node));
  });
}

void run_hook(const TensorHook& hook, Gradient& gradient, const char* where) {
  TERCEL_CHECK(!gradient.is_rows(), NotImplementedError, "hook on ", where, ": hooks do not support row gradients");
  if (Tensor changed = hook(gradient.values); changed.defined()) gradient.values = std::move(changed);
}

}  // namespace tercel
