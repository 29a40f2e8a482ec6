// A tensor kept for backward, which must still be what it was when backward uses it.
#pragma once

#include <any>

#include "tercel/core/tensor.h"
#include "tercel/util/callable.h"

namespace tercel {

class BackwardCall;

/**
 * What becomes of tensors that ops save: pack() is given each and returns what to keep in its place (a file's name, a
 * copy in a smaller dtype), unpack() makes a tensor of that when backward needs it. Neither is recorded.
 */
struct SavedTensorHooks {
  Callable<std::any(const Tensor& tensor)> pack;
  Callable<Tensor(const std::any& packed)> unpack;
};

/** The hooks hold for what this thread saves in the scope; of nested scopes the innermost counts. */
class TERCEL_API SavedTensorHooksGuard {
 public:
  explicit SavedTensorHooksGuard(SavedTensorHooks hooks);
  ~SavedTensorHooksGuard();
  SavedTensorHooksGuard(const SavedTensorHooksGuard&) = delete;
  SavedTensorHooksGuard& operator=(const SavedTensorHooksGuard&) = delete;

 private:
  const std::shared_ptr<const SavedTensorHooks>* before_;
  // Shared by the scope and by what was packed in it.
  std::shared_ptr<const SavedTensorHooks> hooks_;
};

namespace detail {
TERCEL_API extern constinit thread_local const std::shared_ptr<const SavedTensorHooks>* t_saved_tensor_hooks
    [[gnu::tls_model("initial-exec")]];
class PackedTensor;
}  // namespace detail

class TERCEL_API SavedTensor {
 public:
  SavedTensor() = default;
  /** An input of the op. RuntimeError for an inference tensor. */
  explicit SavedTensor(const Tensor& input) : tensor_(input), version_(input.version()) {
    if (input.impl().is_inference() || detail::t_saved_tensor_hooks) [[unlikely]]
      check_and_pack();
  }
  /** An output of the op: kept without history, or tensor and node would own each other. */
  static SavedTensor output(const Tensor& output, uint32_t output_nr = 0);
  /** Saves only what is asked for. */
  static SavedTensor when(bool needed, const Tensor& input) { return needed ? SavedTensor(input) : SavedTensor(); }

  bool defined() const { return tensor_.defined() || packed_.defined(); }
  /** The tensor, with its history; RuntimeError when it was changed in place since. Of an output see below. */
  Tensor get() const {
    if (packed_.defined()) [[unlikely]]
      return unpack();
    if (tensor_.version() != version_) [[unlikely]]
      refuse_changed(nullptr);
    TERCEL_ASSERT(output_nr_ < 0 || !recording());
    return tensor_;
  }
  /** The same; an output has its history again, the node that runs, where backward is recorded. */
  Tensor get(const BackwardCall& call) const;

 private:
  [[noreturn]] void refuse_changed(const BackwardCall* call) const;
  void check_and_pack();
  Tensor unpack() const;
  static bool recording();

  Tensor tensor_;
  intrusive_ptr<intrusive_ptr_target> packed_;
  uint32_t version_ = 0;
  int32_t output_nr_ = -1;  // of an input -1
};

}  // namespace tercel
