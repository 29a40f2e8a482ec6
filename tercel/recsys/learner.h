// A model with the optimizers of its parameters and tables; runs training steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/optim/optimizer.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/model/model.h"

namespace tercel::recsys {

class TERCEL_API Learner {
 public:
  /** Takes an initialised model; ConfigError for optimizer options that a rule rejects. */
  Learner(Model model, const ModelConfig& config);

  /**
   * Forward, backward and update on one batch, as step number `step` (from 1) with that learning rate; returns the
   * loss. NumericError that names the first layer with such an output if the loss is not finite. Exceptions before
   * the update leave all state as it was before the step.
   */
  float train(const data::Batch& batch, double learning_rate, int64_t step);

  /** Whether the state is that after a complete step; false after an error in an update. */
  bool is_whole() const { return !updating_; }

  /**
   * NumericError that names the first weight or state that is not finite after step number `step`. Reads them only to
   * find the name, since the update kernels report whether there is one.
   */
  void check_finite(int64_t step);

  Model& model() { return model_; }
  /** Everything to save, as views: dense weights, states and buffers in one file, each table with its states in
   * another. */
  std::vector<CheckpointFile> files();

 private:
  Tensor forward(const data::Batch& batch, int64_t step);
  void update(double learning_rate, int64_t step);
  void keep_forward_state();
  void restore_forward_state();

  Model model_;
  optim::Optimizer dense_;
  std::vector<Tensor> buffers_, kept_buffers_;  // what a forward pass changes, with copies from before it
  Model::Result result_;  // a member only to reuse its memory
  bool updating_ = false;
};

/** The part of the first of Learner::files() that prediction needs: dense weights and buffers. */
TERCEL_API CheckpointFile dense_file(Model& model);
/** The name of a table's file, by its number in the graph; the table has the name of its layer there. */
TERCEL_API std::string table_file(size_t table);

}  // namespace tercel::recsys
