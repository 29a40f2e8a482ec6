#include "tercel/recsys/layers/batch_norm.h"

namespace tercel::recsys {

BatchNorm::BatchNorm(const Options& options, BuildContext& context)
    : Layer(context), parameters_(context.parameters), name_(context.name), options_(options.bn_param) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.size() != 1)
    refuse_inputs(context, "one input [batch, n]");
  const int64_t n = context.bottoms[0].sizes[0];
  of_ = GammaAndBeta::reserve(parameters_, name_, n, options_.gamma_init);
  add_top(DimVector{n});
}

void BatchNorm::allocate(const TensorOptions& place) { running_.allocate(tops()[0].sizes[0], place); }

void BatchNorm::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) {
  tops[0] = running_.normalize(bottoms[0], context, options_.factor, options_.eps, parameters_[of_.gamma],
                               parameters_[of_.beta]);
}

std::vector<std::pair<std::string, Tensor>> BatchNorm::buffers() { return running_.buffers(name_); }

}  // namespace tercel::recsys
