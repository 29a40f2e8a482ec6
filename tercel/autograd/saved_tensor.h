// A tensor saved for backward, with a check that it was not changed in place since.
#pragma once

#include <any>
#include <memory>
#include <utility>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/util/callable.h"

namespace tercel {

class BackwardCall;

/**
 * Hooks for tensors that ops save: pack() returns an object to keep instead of the tensor (a file name, a copy in a
 * smaller dtype), unpack() converts it back when backward needs it. Neither is recorded.
 */
struct SavedTensorHooks {
  Callable<std::any(const Tensor& tensor)> pack;
  Callable<Tensor(const std::any& packed)> unpack;
};

/** Applies the hooks to tensors saved by this thread in the scope; the innermost scope takes effect. */
class TERCEL_API SavedTensorHooksGuard {
 public:
  explicit SavedTensorHooksGuard(SavedTensorHooks hooks);
  ~SavedTensorHooksGuard();
  SavedTensorHooksGuard(const SavedTensorHooksGuard&) = delete;
  SavedTensorHooksGuard& operator=(const SavedTensorHooksGuard&) = delete;

 private:
  const std::shared_ptr<const SavedTensorHooks>* before_;
  // Shared by the scope and the tensors packed in it.
  std::shared_ptr<const SavedTensorHooks> hooks_;
};

class SavedTensor;

namespace detail {
TERCEL_API extern constinit thread_local const std::shared_ptr<const SavedTensorHooks>* t_saved_tensor_hooks
    [[gnu::tls_model("initial-exec")]];
class PackedTensor;

// Note [What a function saves]
// A node does not know the members of its backward function, a lambda. Instead SavedTensors register themselves: while
// the function moves into the node, those that hold a tensor are counted, which tells whether backward has anything to
// free; to list the saved tensors, the function is copied, and its SavedTensors add themselves to a list.
TERCEL_API extern constinit thread_local uint32_t t_saved_moves [[gnu::tls_model("initial-exec")]];
TERCEL_API extern constinit thread_local std::vector<SavedTensor*>* t_saved_found [[gnu::tls_model("initial-exec")]];
}  // namespace detail

class TERCEL_API SavedTensor {
 public:
  SavedTensor() = default;
  SavedTensor(SavedTensor&& other) noexcept
      : tensor_(std::move(other.tensor_)),
        packed_(std::move(other.packed_)),
        version_(other.version_),
        output_nr_(other.output_nr_) {
    detail::t_saved_moves += defined() ? 1 : 0;
  }
  SavedTensor(const SavedTensor& other)
      : tensor_(other.tensor_), packed_(other.packed_), version_(other.version_), output_nr_(other.output_nr_) {
    // What is listed belongs to a node, which the list's owner may change.
    if (detail::t_saved_found) [[unlikely]]
      detail::t_saved_found->push_back(const_cast<SavedTensor*>(&other));
  }
  SavedTensor& operator=(SavedTensor&& other) noexcept = default;
  SavedTensor& operator=(const SavedTensor& other) = default;
  ~SavedTensor() = default;
  /** An input of the op. RuntimeError for an inference tensor. */
  explicit SavedTensor(const Tensor& input) : tensor_(input), version_(input.version()) {
    if (input.impl().is_inference() || detail::t_saved_tensor_hooks) [[unlikely]]
      check_and_pack();
  }
  /** An output of the op: saved without history, since tensor and node would own each other. */
  static SavedTensor output(const Tensor& output, uint32_t output_nr = 0);
  /** Saves the input if it is needed. */
  static SavedTensor when(bool needed, const Tensor& input) { return needed ? SavedTensor(input) : SavedTensor(); }

  /** Packs the tensor with these hooks. RuntimeError if there is none, or if it is packed already. */
  void register_hooks(const SavedTensorHooks& hooks);
  /** Whether it is a result of the op, not an operand. */
  bool is_output() const { return output_nr_ >= 0; }

  /** For an output: copies its tangent to the saved copy; see forward_mode.h. */
  void carry_tangent(Span<Tensor> outputs);

  bool defined() const { return tensor_.defined() || packed_.defined(); }
  /** The tensor, with its history; RuntimeError if it was changed in place since. For outputs see below. */
  Tensor get() const {
    if (packed_.defined()) [[unlikely]]
      return unpack();
    if (tensor_.version() != version_) [[unlikely]]
      refuse_changed(nullptr);
    TERCEL_ASSERT(output_nr_ < 0 || !recording());
    return tensor_;
  }
  /** The same; if backward is recorded, an output gets its history again, the running node. */
  Tensor get(const BackwardCall& call) const;

 private:
  [[noreturn]] void refuse_changed(const BackwardCall* call) const;
  void check_and_pack();
  void pack_with(const std::shared_ptr<const SavedTensorHooks>& hooks);
  Tensor unpack() const;
  static bool recording();

  Tensor tensor_;
  intrusive_ptr<intrusive_ptr_target> packed_;
  uint32_t version_ = 0;
  int32_t output_nr_ = -1;  // of an input -1
};

/** Counted in place of the elements of a container, which does not move them one by one. */
struct SavedMark {
  SavedMark() = default;
  SavedMark(SavedMark&&) noexcept { ++detail::t_saved_moves; }
  SavedMark(const SavedMark&) = default;
  SavedMark& operator=(SavedMark&&) = default;
  SavedMark& operator=(const SavedMark&) = default;
  ~SavedMark() = default;
};

/** Any number of them. */
class SavedTensors : private SavedMark {
 public:
  explicit SavedTensors(Span<Tensor> tensors) {
    for (const Tensor& t : tensors) saved_.emplace_back(t);
  }

  std::vector<Tensor> get() const {
    std::vector<Tensor> out;
    for (const SavedTensor& s : saved_) out.push_back(s.get());
    return out;
  }

 private:
  std::vector<SavedTensor> saved_;
};

namespace detail {
/** During its lifetime, SavedTensors copied by this thread are listed: see Note [What a function saves]. */
class TERCEL_API SavedTensorFinder {
 public:
  SavedTensorFinder() : before_(std::exchange(t_saved_found, &found)) {}
  ~SavedTensorFinder() { t_saved_found = before_; }
  SavedTensorFinder(const SavedTensorFinder&) = delete;
  SavedTensorFinder& operator=(const SavedTensorFinder&) = delete;

  std::vector<SavedTensor*> found;

 private:
  std::vector<SavedTensor*>* before_;
};
}  // namespace detail

}  // namespace tercel
