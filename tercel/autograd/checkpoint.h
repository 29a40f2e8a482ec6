// Activation checkpointing: parts of a graph are recomputed in backward instead of stored.
#pragma once

#include <memory>
#include <vector>

#include "tercel/autograd/saved_tensor.h"
#include "tercel/core/generator.h"
#include "tercel/core/tensor.h"
#include "tercel/util/callable.h"
#include "tercel/util/error.h"

namespace tercel {

/** A part of a model. It must be deterministic: the same inputs give the same outputs. */
using CheckpointedFunction = Callable<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

struct CheckpointOptions {
  /** Backward calls f with the random numbers of the forward pass. */
  bool preserve_rng_state = true;
  /**
   * Backward runs a nested backward: only first derivatives, and RuntimeError in grad() and in backward() with inputs,
   * which would miss leaves that f captures.
   * Nothing is recorded if no input requires a gradient.
   */
  bool use_reentrant = false;
  /** Compares sizes, dtypes and devices of recomputed tensors with those of the forward pass. */
  bool determinism_check = true;
};

/** f(inputs), saving only the inputs: backward calls f again. CheckpointError if the recomputed tensors differ.
 */
TERCEL_API std::vector<Tensor> checkpoint(CheckpointedFunction f, const std::vector<Tensor>& inputs,
                                          const CheckpointOptions& options = {});
/** Runs the functions in sequence, as `segments` parts of about equal length, all but the last checkpointed. */
TERCEL_API std::vector<Tensor> checkpoint_sequential(const std::vector<CheckpointedFunction>& functions,
                                                     int64_t segments, const std::vector<Tensor>& inputs,
                                                     const CheckpointOptions& options = {});

/** A recomputed part differs from the forward pass. */
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
 * In the scope, ops save nothing for backward. recompute(), which must do what the scope did, is called once per
 * backward pass and provides the tensors.
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
