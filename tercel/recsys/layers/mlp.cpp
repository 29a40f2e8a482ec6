#include "tercel/recsys/layers/mlp.h"

#include <cmath>

namespace tercel::recsys {

Mlp::Mlp(const Options& options, BuildContext& context) : Layer(context), parameters_(context.parameters) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.size() != 1)
    refuse_inputs(context, "one input [batch, n]");
  const MlpOptions::Parameters& p = options.mlp_param;
  std::vector<int64_t> widths = p.num_outputs;
  if (widths.empty() && p.num_output > 0) widths.push_back(p.num_output);
  TERCEL_CHECK(!widths.empty(), ConfigError, "[MLP ", context.name, "] num_outputs is missing");
  const auto one_a_layer = [&](size_t found, std::string_view what) {
    TERCEL_CHECK(found == widths.size(), ConfigError, "[MLP ", context.name, "] expected ", widths.size(), " ", what,
                 ", one a layer, but got ", found);
  };
  activations_ = p.activations;
  if (activations_.empty()) activations_.assign(widths.size(), p.activation);
  one_a_layer(activations_.size(), "activations");
  std::vector<Flag> biases = p.biases;
  if (biases.empty()) biases.assign(widths.size(), Flag{p.use_bias});
  one_a_layer(biases.size(), "biases");
  int64_t in = context.bottoms[0].sizes[0];
  for (size_t i = 0; i < widths.size(); ++i) {
    const int64_t out = widths[i];
    const std::string name = std::string(context.name) + "." + std::to_string(i);
    const nn::Init range = nn::Init::uniform(std::sqrt(1 / static_cast<double>(in)));
    Sublayer layer{};
    layer.weight = parameters_.reserve(name + ".weight", {in, out}, resolve(p.weight_init, in, out, range, range));
    layer.has_bias = biases[i].value;
    if (layer.has_bias)
      layer.bias = parameters_.reserve(name + ".bias", {out}, resolve(p.bias_init, out, out, range, range));
    layers_.push_back(layer);
    in = out;
  }
  add_top(DimVector{in});
}

void Mlp::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  if (weights_.empty()) {
    for (const Sublayer& layer : layers_) {
      weights_.push_back(parameters_[layer.weight]);
      biases_.push_back(layer.has_bias ? parameters_[layer.bias] : Tensor());
    }
  }
  tops[0] = mlp(bottoms[0], weights_, biases_, activations_);
}

}  // namespace tercel::recsys
