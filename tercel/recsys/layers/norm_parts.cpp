#include "tercel/recsys/layers/norm_parts.h"

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/batch_norm.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/recsys/ranks.h"

namespace tercel::recsys {

void RunningStatistics::allocate(int64_t n, const TensorOptions& place) {
  mean_ = zeros({n}, place);
  var_ = ones({n}, place);
}

std::vector<std::pair<std::string, Tensor>> RunningStatistics::buffers(const std::string& name) const {
  return {{name + ".running_mean", mean_}, {name + ".running_var", var_}};
}

Tensor RunningStatistics::normalize(const Tensor& x, const ForwardContext& context, double factor, double eps,
                                    const Tensor& gamma, const Tensor& beta) const {
  if (context.training && context.group != nullptr) return normalize_parts(x, *context.group, factor, eps, gamma, beta);
  // A single row is possible in an epoch's last batch.
  const bool by_batch = context.training && x.size(0) > 1;
  return batch_norm(x, mean_, var_, gamma, beta, {by_batch, factor, eps});
}

// Mean first, then variance about it: the squares of values far from 0 would lose it.
Tensor RunningStatistics::normalize_parts(const Tensor& x, distributed::ProcessGroup& group, double factor, double eps,
                                          const Tensor& gamma, const Tensor& beta) const {
  int64_t rows = 0;
  for (const int64_t part : numbers_of_ranks(group, x.size(0))) rows += part;
  if (rows <= 1) return batch_norm(x, mean_, var_, gamma, beta, {/*training=*/false, factor, eps});
  const auto n = static_cast<double>(rows);
  const Tensor mean = div(recorded_sum_over_ranks(group, sum(x, {0})), n);
  const Tensor centered = sub(x, mean);
  const Tensor var = div(recorded_sum_over_ranks(group, sum(mul(centered, centered), {0})), n);
  {
    const NoGradGuard no_grad;
    lerp_(mean_, to(mean.detach(), mean_.dtype()), factor);
    lerp_(var_, to(mul(var.detach(), n / (n - 1)), var_.dtype()), factor);
  }
  Tensor normal = mul(centered, rsqrt(add(var, eps)));
  if (gamma.defined()) normal = mul(normal, gamma);
  return beta.defined() ? add(normal, beta) : normal;
}

}  // namespace tercel::recsys
