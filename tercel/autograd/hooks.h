// Functions that users hang into the backward pass.
//
// Note [Order of hooks]
// When the gradient of a node's output is complete: the tensor hooks of that output in the order of their registration,
// then what retain_grad() asked for, so that .grad is what the last hook made of it; then grad() takes what it was
// asked for. Then the node's pre-hooks, its backward (a leaf: accumulation, then the leaf's post-accumulate hooks), and
// its post-hooks. Hooks run with gradients on exactly when the pass creates a graph. One that another hook of the same
// kind and place removes is still called in this pass.
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
 * Sees the gradient of a tensor, an undefined one where nothing depends on it but on other results of its node, and may
 * return another to take its place; an undefined one keeps it.
 */
using TensorHook = Callable<Tensor(const Tensor& gradient)>;
/** Sees a leaf whose .grad has just been added to. */
using LeafHook = Callable<void(const Tensor& leaf)>;
/** Sees the gradients of a node's outputs before its backward runs; may return others. Undefined where there is none.
 */
using NodePreHook = Callable<std::optional<std::vector<Tensor>>(const std::vector<Tensor>& grad_outputs)>;
/** Sees the gradients that a node's backward made, and those it was given; may return others to take their place. */
using NodePostHook = Callable<std::optional<std::vector<Tensor>>(const std::vector<Tensor>& grad_inputs,
                                                                 const std::vector<Tensor>& grad_outputs)>;

namespace detail {
struct HookEntry {
  std::atomic<bool> removed{false};
};
}  // namespace detail

/** Takes a hook out again. May outlive what the hook hangs on. */
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::weak_ptr<detail::HookEntry> entry) : entry_(std::move(entry)) {}

  /** The hook is not called any more; nothing happens the second time. */
  void remove() {
    if (const auto entry = entry_.lock()) entry->removed = true;
  }

 private:
  std::weak_ptr<detail::HookEntry> entry_;
};

/** Hooks of one kind. The list and those who run it share an entry, so that a hook may remove itself or add others. */
template <class F>
class HookList {
 public:
  HookHandle add(F function, uint32_t output_nr = 0) {
    std::erase_if(entries_, [](const auto& entry) { return entry->removed.load(); });
    entries_.push_back(std::make_shared<Entry>(std::move(function), output_nr));
    return HookHandle(entries_.back());
  }
  bool empty() const { return entries_.empty(); }
  /** Calls visit(function) for the hooks of an output that were there when it began. */
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

/** What few nodes have. */
struct NodeExtras {
  HookList<TensorHook> tensor_hooks;
  HookList<NodePreHook> pre_hooks;
  HookList<NodePostHook> post_hooks;
  /** Tensors, by output, in whose .grad the gradient is to be left; those hold the node. */
  struct Retained {
    uint32_t output_nr;
    weak_intrusive_ptr<TensorImpl, detail::UndefinedTensor> tensor;
  };
  std::vector<Retained> retained;
  /** Where the op was recorded, as anomaly mode's trace function said. */
  std::string trace;
  /** In forward mode, those of the inputs until the op is recorded; see forward_mode.h. */
  std::vector<Tensor> tangents;
  /** In anomaly mode, the node whose backward has recorded this one. */
  intrusive_ptr<intrusive_ptr_target> induced_by;
  /** What another language keeps with the node. */
  std::shared_ptr<void> companion;
};

/** Lets a hook see, and replace, a gradient; `where` names it in the error for a gradient of rows. */
void run_hook(const TensorHook& hook, Gradient& gradient, const char* where);

}  // namespace tercel
