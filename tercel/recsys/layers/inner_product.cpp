#include "tercel/recsys/layers/inner_product.h"

#include <cmath>

#include "tercel/ops/nn/linear.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

InnerProduct::InnerProduct(const Options& options, BuildContext& context)
    : Layer(context), parameters_(context.parameters) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.empty())
    refuse_inputs(context, "one input [batch, ..., n]");
  const InnerProductOptions::Parameters& p = options.fc_param;
  const int64_t in = context.bottoms[0].sizes.back(), out = p.num_output;
  const auto n = static_cast<double>(in), k = static_cast<double>(out);
  const std::string name(context.name);
  weight_ = parameters_.reserve(
      name + ".weight", {in, out},
      resolve(p.weight_init, in, out, nn::Init::xavier_normal(in, out), nn::Init::uniform(1 / (n + k))));
  bias_ =
      parameters_.reserve(name + ".bias", {out},
                          resolve(p.bias_init, 0, out, nn::Init::normal(std::sqrt(1 / k)), nn::Init::uniform(1 / k)));
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
