#include "tercel/recsys/model/hugectr_defaults.h"

namespace tercel::recsys {

ModelConfig hugectr_defaults() {
  ModelConfig config;
  config.solver.batchsize_eval = 2048;
  config.optimizer.update_type = optim::UpdateType::Global;
  config.optimizer.momentum_factor = 0;
  config.optimizer.epsilon = 1e-7;
  config.data.drop_last = true;
  config.data.shuffle = false;
  config.data.validation = Validation::None;
  return config;
}

}  // namespace tercel::recsys
