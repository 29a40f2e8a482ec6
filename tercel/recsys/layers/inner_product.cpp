#include "tercel/recsys/layers/inner_product.h"

#include <cmath>

#include "tercel/ops/nn/linear.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

nn::Init initial_weight(const InnerProductOptions::Parameters& options, int64_t in) {
  const int64_t out = options.num_output;
  return resolve(options.weight_init, in, out, nn::Init::xavier_normal(in, out),
                 nn::Init::uniform(1 / (static_cast<double>(in) + static_cast<double>(out))));
}

nn::Init initial_bias(const InnerProductOptions::Parameters& options) {
  const auto k = static_cast<double>(options.num_output);
  return resolve(options.bias_init, 0, options.num_output, nn::Init::normal(std::sqrt(1 / k)),
                 nn::Init::uniform(1 / k));
}

InnerProduct::InnerProduct(const Options& options, BuildContext& context)
    : Layer(context), parameters_(context.parameters) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.empty())
    refuse_inputs(context, "one input [batch, ..., n]");
  const int64_t in = context.bottoms[0].sizes.back(), out = options.fc_param.num_output;
  const std::string name(context.name);
  weight_ = parameters_.reserve(name + ".weight", {in, out}, initial_weight(options.fc_param, in));
  bias_ = parameters_.reserve(name + ".bias", {out}, initial_bias(options.fc_param));
  DimVector top = context.bottoms[0].sizes;
  top.back() = out;
  add_top(std::move(top));
}

void InnerProduct::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor& x = bottoms[0];
  const Tensor rows = x.dim() == 2 ? x : reshape(x, {-1, x.size(-1)});
  Tensor y = inner_product(rows, parameters_[weight_], parameters_[bias_]);
  if (x.dim() != 2) {
    DimVector sizes(x.sizes());
    sizes.back() = y.size(1);
    y = view(y, sizes);
  }
  tops[0] = std::move(y);
}

}  // namespace tercel::recsys
