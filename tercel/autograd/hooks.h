// User callbacks in the backward pass.
//
// Note [Order of hooks]
// When the gradient of a node's output is complete: the tensor hooks of that output in the order of their registration,
// then retain_grad() stores it, so that .grad is the last hook's result; then grad() captures it if it is a target.
// Then the node's pre-hooks, its backward (a leaf: accumulation, then the leaf's post-accumulate hooks), and
// its post-hooks. Hooks run with gradients on if and only if the pass creates a graph. A hook that another hook of the
// same list removes is still called in this pass.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tercel/autograd/gradient.h"
#include "tercel/util/callable.h"

namespace tercel {

/**
 * Receives a tensor's gradient, which is undefined if only other results of its node have one, and may return another
 * to replace it; an undefined result keeps it.
 */
using TensorHook = Callable<Tensor(const Tensor& gradient)>;
/** Receives a leaf after its .grad was accumulated. */
using LeafHook = Callable<void(const Tensor& leaf)>;
/** Receives the gradients of a node's outputs (undefined: none) before its backward runs; may return replacements.
 */
using NodePreHook = Callable<std::optional<std::vector<Tensor>>(const std::vector<Tensor>& grad_outputs)>;
/** Receives the gradients from a node's backward, and those it was given; may return replacements for the former. */
using NodePostHook = Callable<std::optional<std::vector<Tensor>>(const std::vector<Tensor>& grad_inputs,
                                                                 const std::vector<Tensor>& grad_outputs)>;

namespace detail {
struct HookEntry {
  std::atomic<bool> removed{false};
};
}  // namespace detail

/** Removes a hook. May outlive the tensor or node of the hook. */
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::weak_ptr<detail::HookEntry> entry) : entry_(std::move(entry)) {}

  /** Removes the hook; has no effect the second time. */
  void remove() {
    if (const auto entry = entry_.lock()) entry->removed = true;
  }

 private:
  std::weak_ptr<detail::HookEntry> entry_;
};

/** Hooks of one kind. Entries are shared with a running iteration, so that a hook may remove itself or add others. */
template <class F>
class HookList {
 public:
  HookHandle add(F function, uint32_t output_nr = 0) {
    std::erase_if(entries_, [](const auto& entry) { return entry->removed.load(); });
    entries_.push_back(std::make_shared<Entry>(std::move(function), output_nr));
    return HookHandle(entries_.back());
  }
  bool empty() const { return entries_.empty(); }
  /** Calls visit(function) for the hooks of an output that exist at the start of the call. */
  template <class Visit>
  void for_each(uint32_t output_nr, Visit visit) const {
    std::vector<std::shared_ptr<Entry>> now;
    for (const auto& entry : entries_)
      if (entry->output_nr == output_nr && !entry->removed.load()) now.push_back(entry);
    for (const auto& entry : now) visit(entry->function);
  }

 private:
  struct Entry : detail::HookEntry {
    F function;
    uint32_t output_nr;
    Entry(F f, uint32_t nr) : function(std::move(f)), output_nr(nr) {}
  };
  std::vector<std::shared_ptr<Entry>> entries_;
};

/** Rarely needed fields of nodes. */
struct NodeExtras {
  HookList<TensorHook> tensor_hooks;
  HookList<NodePreHook> pre_hooks;
  HookList<NodePostHook> post_hooks;
  /** Tensors, by output, whose .grad retains the gradient; they own the node. */
  struct Retained {
    uint32_t output_nr;
    weak_intrusive_ptr<TensorImpl, detail::UndefinedTensor> tensor;
  };
  std::vector<Retained> retained;
  /** Where the op was recorded, from anomaly mode's trace callback. */
  std::string trace;
  /** Tangents of the inputs until the op is recorded; see forward_mode.h. */
  std::vector<Tensor> tangents;
  /** In anomaly mode, the node whose backward has recorded this one. */
  intrusive_ptr<intrusive_ptr_target> induced_by;
  /** Data of a language binding. */
  std::shared_ptr<void> companion;
};

/** Calls a hook, which may replace the gradient; `where` names it in the error for a gradient of rows. */
void run_hook(const TensorHook& hook, Gradient& gradient, const char* where);

}  // namespace tercel
