// Memory for time: parts of a graph that are calculated again when backward needs them.
#pragma once

#include <memory>
#include <vector>

#include "tercel/autograd/saved_tensor.h"
#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"
#include "tercel/util/callable.h"
#include "tercel/util/error.h"

namespace tercel {

/** A part of a model: tensors in, tensors out. It must give the same each time it is called with the same. */
using CheckpointedFunction = Callable<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

struct CheckpointOptions {
  /** Backward calls f with the random numbers of the first time. */
  bool preserve_rng_state = true;
  /**
   * Backward runs a backward of its own inside: no more than one derivative, and RuntimeError in grad() and in
   * backward() of given inputs, which would leave out leaves that f knows by itself. Nothing is recorded if no input
   * requires a gradient.
   */
  bool use_reentrant = false;
  /** Sizes, dtypes and devices of what is calculated again are compared with those of the first time. */
  bool determinism_check = true;
};

/** f(inputs), of which only the inputs are kept: backward calls f again. CheckpointError if that gave something else.
 */
TERCEL_API std::vector<Tensor> checkpoint(CheckpointedFunction f, const std::vector<Tensor>& inputs,
                                          const CheckpointOptions& options = {});
/** The functions one after the other, in so many parts of about equal length, all but the last of them checkpoints. */
TERCEL_API std::vector<Tensor> checkpoint_sequential(const std::vector<CheckpointedFunction>& functions,
                                                     int64_t segments, const std::vector<Tensor>& inputs,
                                                     const CheckpointOptions& options = {});

/** A checkpointed part gave something else when it was calculated again. */
class TERCEL_API CheckpointError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
  ~CheckpointError() override;
  std::string_view kind() const noexcept override { return "CheckpointError"; }
};

namespace detail {
class Recomputation;
}

/**
 * In the scope, ops keep nothing for backward; what they would have kept is calculated by recompute(), which does what
 * the scope did, once for each pass over it.
 */
class TERCEL_API CheckpointScope {
 public:
  CheckpointScope(Callable<void()> recompute, const CheckpointOptions& options);
  ~CheckpointScope();
  CheckpointScope(const CheckpointScope&) = delete;
  CheckpointScope& operator=(const CheckpointScope&) = delete;

 private:
  std::shared_ptr<detail::Recomputation> recomputation_;
  RecordDraws draws_;
  SavedTensorHooksGuard hooks_;
};

}  // namespace tercel
