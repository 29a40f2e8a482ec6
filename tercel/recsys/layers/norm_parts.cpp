#include "tercel/recsys/layers/norm_parts.h"

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/batch_norm.h"

namespace tercel::recsys {

void RunningStatistics::allocate(int64_t n, const TensorOptions& place) {
  mean_ = zeros({n}, place);
  var_ = ones({n}, place);
}

std::vector<std::pair<std::string, Tensor>> RunningStatistics::buffers(const std::string& name) const {
  return {{name + ".running_mean", mean_}, {name + ".running_var", var_}};
}

Tensor RunningStatistics::normalize(const Tensor& x, bool training, double factor, double eps, const Tensor& gamma,
                                    const Tensor& beta) const {
  // A single row is possible in an epoch's last batch.
  const bool by_batch = training && x.size(0) > 1;
  return batch_norm(x, mean_, var_, gamma, beta, {by_batch, factor, eps});
}

}  // namespace tercel::recsys
