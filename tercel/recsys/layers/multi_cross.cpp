#include "tercel/recsys/layers/multi_cross.h"

#include <cmath>

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/nn/linear.h"

namespace tercel::recsys {

MultiCross::MultiCross(const Options& options, BuildContext& context)
    : Layer(context), parameters_(context.parameters), projects_(options.mc_param.projection_dim > 0) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.size() != 1)
    refuse_inputs(context, "one input [batch, n]");
  const MultiCrossOptions::Parameters& o = options.mc_param;
  const int64_t n = context.bottoms[0].sizes[0], p = o.projection_dim;
  const auto init = [&](int64_t fan_in, int64_t fan_out) {
    const double average = static_cast<double>(fan_in + fan_out) / 2;
    return resolve(o.weight_init, fan_in, fan_out, nn::Init::normal(std::sqrt(1 / average)),
                   nn::Init::uniform(1 / (2 * average)));
  };
  for (int64_t i = 0; i < o.num_layers; ++i) {
    const std::string name = std::string(context.name) + "." + std::to_string(i);
    Cross cross{};
    if (projects_) {
      cross.u = parameters_.reserve(name + ".u", {n, p}, init(n, p));
      cross.v = parameters_.reserve(name + ".v", {p, n}, init(p, n));
    } else {
      cross.u = parameters_.reserve(name + ".weight", {1, n}, init(n, 1));
    }
    cross.bias = parameters_.reserve(
        name + ".bias", {n},
        resolve(o.bias_init, n, n, nn::Init::zero(), nn::Init::uniform(1 / static_cast<double>(n))));
    layers_.push_back(cross);
  }
  add_top(DimVector{n});
}

void MultiCross::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor& x0 = bottoms[0];
  Tensor x = x0;
  for (const Cross& cross : layers_) {
    const Tensor& bias = parameters_[cross.bias];
    if (projects_)
      x = add(mul(x0, inner_product(mm(x, parameters_[cross.u]), parameters_[cross.v], bias)), x);
    else
      x = add(add(mul(x0, linear(x, parameters_[cross.u])), bias), x);
  }
  tops[0] = std::move(x);
}

}  // namespace tercel::recsys
