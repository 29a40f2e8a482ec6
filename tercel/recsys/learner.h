// A model together with the optimizers of its parameters and tables: what one step of training needs.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/optim/optimizer.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/model/model.h"

namespace tercel::recsys {

class TERCEL_API Learner {
 public:
  /** Takes an initialised model; ConfigError for optimizer options that a rule refuses. */
  Learner(Model model, const ModelConfig& config);

  /**
   * Forward, backward and update on one batch, as step number `step` (from 1) with that learning rate; returns the
   * loss. NumericError when the loss is not finite, before anything is changed; it names the first layer that made it
   * so.
   */
  float train(const data::Batch& batch, double learning_rate, int64_t step);

  /** NumericError, which names the first one, when a weight or state is not finite after step number `step`. */
  void check_finite(int64_t step);

  Model& model() { return model_; }
  /** Everything to save, as views: dense weights, states and buffers in one file, each table with its states in
   * another. */
  std::vector<CheckpointFile> files();

 private:
  Model model_;
  optim::Optimizer dense_;
  std::vector<optim::Optimizer> tables_;
};

/** The part of Learner::files() that prediction needs: weights and buffers. */
TERCEL_API std::vector<CheckpointFile> model_files(Model& model);

}  // namespace tercel::recsys
