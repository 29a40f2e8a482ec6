// A tensor kept for backward, which must still be what it was when backward uses it.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

class TERCEL_API SavedTensor {
 public:
  SavedTensor() = default;
  /** An input of the op. */
  explicit SavedTensor(const Tensor& input) : tensor_(input), version_(input.defined() ? input.version() : 0) {}
  /** The op's own output: kept without history, or tensor and node would own each other. */
  static SavedTensor output(const Tensor& output);
  /** Saves only what is asked for. */
  static SavedTensor when(bool needed, const Tensor& input) { return needed ? SavedTensor(input) : SavedTensor(); }

  bool defined() const { return tensor_.defined(); }
  /** The tensor; ValueError when it was changed in place since. */
  const Tensor& get() const {
    if (tensor_.defined() && tensor_.version() != version_) [[unlikely]]
      refuse_changed();
    return tensor_;
  }

 private:
  [[noreturn]] void refuse_changed() const;

  Tensor tensor_;
  uint32_t version_ = 0;
};

}  // namespace tercel
