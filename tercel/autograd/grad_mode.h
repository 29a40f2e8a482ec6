// Whether ops are recorded, per thread.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

namespace detail {
// One byte of static TLS: read in one instruction, also from a library that was loaded late.
TERCEL_API extern constinit thread_local bool t_grad_enabled [[gnu::tls_model("initial-exec")]];
}  // namespace detail

/** True unless a NoGradGuard is alive on this thread. */
inline bool grad_enabled() { return detail::t_grad_enabled; }

/** Sets whether this thread records, and puts it back at the end of the scope. */
class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) : before_(detail::t_grad_enabled) { detail::t_grad_enabled = enabled; }
  ~GradModeGuard() { detail::t_grad_enabled = before_; }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool before_;
};

/** Sets whether this thread records, for good. */
inline void set_grad_enabled(bool enabled) { detail::t_grad_enabled = enabled; }

/** Nothing in the scope is recorded. */
class NoGradGuard : GradModeGuard {
 public:
  NoGradGuard() : GradModeGuard(false) {}
};

/** Ops in the scope are recorded again, inside a NoGradGuard's. */
class EnableGradGuard : GradModeGuard {
 public:
  EnableGradGuard() : GradModeGuard(true) {}
};

/** True inside an InferenceMode. */
inline bool is_inference_mode_enabled() { return detail::t_inference_mode; }

/**
 * Nothing in the scope is recorded, and tensors made in it are inference tensors: they have no version counter, are not
 * tracked as views, and can neither be saved for backward nor, outside of the mode, be changed in place. False switches
 * the mode off again inside another one.
 */
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true) : grad_mode_(!enabled), before_(detail::t_inference_mode) {
    detail::t_inference_mode = enabled;
  }
  ~InferenceMode() { detail::t_inference_mode = before_; }
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;

 private:
  GradModeGuard grad_mode_;
  bool before_;
};

/** Whether an op with these inputs must be recorded. */
template <class... T>
bool should_record(const T&... inputs) {
  return grad_enabled() && (inputs.requires_grad() || ...);
}

}  // namespace tercel
