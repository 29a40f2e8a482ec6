#include "tercel/recsys/layers/layer_norm.h"

#include "tercel/ops/nn/norm.h"

namespace tercel::recsys {

LayerNorm::LayerNorm(const Options& options, BuildContext& context)
    : Layer(context), parameters_(context.parameters), eps_(options.ln_param.eps) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.empty())
    refuse_inputs(context, "one input [batch, ..., n]");
  const DimVector& sizes = context.bottoms[0].sizes;
  of_ = GammaAndBeta::reserve(parameters_, std::string(context.name), sizes.back(), options.ln_param.gamma_init);
  add_top(sizes);
}

void LayerNorm::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor& x = bottoms[0];
  tops[0] = layer_norm(x, {x.size(-1)}, parameters_[of_.gamma], parameters_[of_.beta], eps_);
}

}  // namespace tercel::recsys
