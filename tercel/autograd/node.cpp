#include "tercel/autograd/node.h"

#include <memory>

#include "tercel/autograd/grad_mode.h"
#include "tercel/core/allocator.h"

namespace tercel {

namespace detail {

constinit thread_local bool t_grad_enabled [[gnu::tls_model("initial-exec")]] = true;

void refuse_second_backward() {
  throw_error<ValueError>(
      {"Trying to backward through the graph a second time (or directly access saved tensors after they have already "
       "been freed). Saved intermediate values of the graph are freed when you call .backward() or grad(). Specify "
       "retain_graph=true if you need to backward through the graph a second time."});
}

}  // namespace detail

namespace {
thread_local uint64_t t_sequence = 0;

// Note [Long graphs]
// Destroying the last node of a chain destroys the next, and so on: a graph of a million ops would overflow the stack.
// So a dying node hands its edges to a list of its thread; only the outermost destructor works the list off.
thread_local std::vector<intrusive_ptr<Node>>* t_dying = nullptr;
}  // namespace

bool BackwardCall::needs(size_t input) const { return node_.edge(input).defined(); }

Node::Node(const char* op_name, uint32_t outputs, size_t inputs)
    : name_(op_name), sequence_(++t_sequence), num_outputs_(outputs), num_edges_(static_cast<uint32_t>(inputs)) {
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

void Node::release_edges() {
  if (t_dying) {
    for (size_t i = 0; i < num_edges_; ++i)
      if (edge(i).defined()) t_dying->push_back(std::move(edge(i).node));
    return;
  }
  // Kept between graphs, so that a training step does not allocate for it.
  static thread_local std::vector<intrusive_ptr<Node>> dying;
  t_dying = &dying;
  for (size_t i = 0; i < num_edges_; ++i)
    if (edge(i).defined()) dying.push_back(std::move(edge(i).node));
  while (!dying.empty()) {
    const intrusive_ptr<Node> node = std::move(dying.back());
    dying.pop_back();
  }
  t_dying = nullptr;
}

void Node::add_hook(uint32_t output_nr, GradientHookPtr hook) {
  if (!hooks_) hooks_ = std::make_unique<std::vector<Hook>>();
  hooks_->push_back({output_nr, std::move(hook)});
}

GradientHook::~GradientHook() = default;

void run_hook(GradientHook& hook, Gradient& gradient, const char* where) {
  TERCEL_CHECK(!gradient.is_rows(), NotImplementedError, "hook on ", where,
               ": the gradient is of rows, which hooks do not see");
  if (Tensor changed = hook.call(gradient.values); changed.defined()) gradient.values = std::move(changed);
}

void Node::run_hooks(uint32_t output_nr, Gradient& gradient) const {
  for (const Hook& hook : *hooks_)
    if (hook.output_nr == output_nr) run_hook(*hook.function, gradient, name_);
}

}  // namespace tercel
