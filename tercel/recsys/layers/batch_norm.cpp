#include "tercel/recsys/layers/batch_norm.h"

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/batch_norm.h"

namespace tercel::recsys {

BatchNorm::BatchNorm(const Options& options, BuildContext& context)
    : Layer(context), parameters_(context.parameters), name_(context.name), options_(options.bn_param) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.size() != 1)
    refuse_inputs(context, "one input [batch, n]");
  const int64_t n = context.bottoms[0].sizes[0];
  gamma_ = parameters_.reserve(name_ + ".gamma", {n},
                               nn::Init::constant(options_.gamma_init == BatchNormInit::Zero ? 0 : 1));
  beta_ = parameters_.reserve(name_ + ".beta", {n}, nn::Init::zero());
  add_top(DimVector{n});
}

void BatchNorm::allocate(const TensorOptions& place) {
  running_mean_ = zeros(tops()[0].sizes, place);
  running_var_ = ones(tops()[0].sizes, place);
}

void BatchNorm::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) {
  // A single row, possible in an epoch's last batch, has no variance.
  const bool by_batch = context.training && bottoms[0].size(0) > 1;
  tops[0] = batch_norm(bottoms[0], running_mean_, running_var_, parameters_[gamma_], parameters_[beta_],
                       {by_batch, options_.factor, options_.eps});
}

std::vector<std::pair<std::string, Tensor>> BatchNorm::buffers() {
  return {{name_ + ".running_mean", running_mean_}, {name_ + ".running_var", running_var_}};
}

}  // namespace tercel::recsys
