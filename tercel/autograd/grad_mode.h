// Whether ops are recorded, per thread.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

namespace detail {
// What this thread records, as TensorImpl::AutogradFlag: gradients unless they are off, tangents inside of a dual
// level. One byte of static TLS: read in one instruction, also from a dlopen'ed library.
TERCEL_API extern constinit thread_local uint8_t t_recorded [[gnu::tls_model("initial-exec")]];

inline void set_recorded(TensorImpl::AutogradFlag reason, bool recorded) {
  t_recorded = static_cast<uint8_t>(recorded ? t_recorded | reason : t_recorded & ~reason);
}

/** Sets one flag and restores it at the end of the scope. */
template <TensorImpl::AutogradFlag Reason>
class RecordedGuard {
 public:
  explicit RecordedGuard(bool recorded) : before_((t_recorded & Reason) != 0) { set_recorded(Reason, recorded); }
  ~RecordedGuard() { set_recorded(Reason, before_); }
  RecordedGuard(const RecordedGuard&) = delete;
  RecordedGuard& operator=(const RecordedGuard&) = delete;

 private:
  bool before_;
};
}  // namespace detail

/** True unless a NoGradGuard is alive on this thread. */
inline bool grad_enabled() { return (detail::t_recorded & TensorImpl::kGradient) != 0; }

/** Sets whether gradients are recorded on this thread, and restores it at the end of the scope. */
class GradModeGuard : detail::RecordedGuard<TensorImpl::kGradient> {
 public:
  using RecordedGuard::RecordedGuard;
};

/** Sets whether this thread records gradients, without a scope. */
inline void set_grad_enabled(bool enabled) { detail::set_recorded(TensorImpl::kGradient, enabled); }

/** Nothing in the scope is recorded. */
class NoGradGuard : GradModeGuard {
 public:
  NoGradGuard() : GradModeGuard(false) {}
};

/** Records neither gradients nor tangents in the scope: for the internals of an op that records itself. */
class NoRecordGuard {
 public:
  NoRecordGuard() : before_(detail::t_recorded) { detail::t_recorded = 0; }
  ~NoRecordGuard() { detail::t_recorded = before_; }
  NoRecordGuard(const NoRecordGuard&) = delete;
  NoRecordGuard& operator=(const NoRecordGuard&) = delete;

 private:
  uint8_t before_;
};

/** Enables recording again inside a NoGradGuard. */
class EnableGradGuard : GradModeGuard {
 public:
  EnableGradGuard() : GradModeGuard(true) {}
};

/** True inside an InferenceMode. */
inline bool is_inference_mode_enabled() { return detail::t_inference_mode; }

/**
 * Nothing in the scope is recorded, and tensors made in it are inference tensors: they have no version counter, are not
 * tracked as views, and can neither be saved for backward nor, outside of the mode, be changed in place. False disables
 * the mode inside another one.
 */
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true)
      : grad_mode_(!enabled),
        tangent_mode_(!enabled && (detail::t_recorded & TensorImpl::kTangent) != 0),
        before_(detail::t_inference_mode) {
    detail::t_inference_mode = enabled;
  }
  ~InferenceMode() { detail::t_inference_mode = before_; }
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;

 private:
  GradModeGuard grad_mode_;
  detail::RecordedGuard<TensorImpl::kTangent> tangent_mode_;
  bool before_;
};

/** Whether ops may have to be recorded: a backward function must then call ops instead of kernels. */
inline bool is_recording() { return detail::t_recorded != 0; }

/** Whether an op with these inputs must be recorded: for gradients, or for tangents (forward_mode.h). */
template <class... T>
bool should_record(const T&... inputs) {
  const int recorded = detail::t_recorded;
  return recorded != 0 && (inputs.impl().is_tracked(recorded) || ...);
}

/**
 * Whether derivatives with respect to x may be requested, now or in another mode, so that ops must save tensors for
 * them.
 */
inline bool is_tracked(const Tensor& x) { return x.impl().is_tracked(TensorImpl::kGradient | TensorImpl::kTangent); }

}  // namespace tercel
