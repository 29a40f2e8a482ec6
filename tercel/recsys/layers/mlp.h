// A stack of fully connected layers.
#pragma once

#include "tercel/ops/nn/linear.h"
#include "tercel/recsys/layers/initializer.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

struct MlpOptions {
  struct Parameters {
    int64_t num_output = 0;
    std::vector<int64_t> num_outputs;
    bool use_bias = true;
    std::vector<Flag> biases;
    Activation activation = Activation::Relu;
    std::vector<Activation> activations;
    Initializer weight_init = Initializer::Default;
    Initializer bias_init = Initializer::Default;

    static constexpr auto fields() {
      return option_list(
          option_field<&Parameters::num_output>("num_output", "width of a single layer", at_least(0), at_most(1 << 24)),
          option_field<&Parameters::num_outputs>("num_outputs", "widths of the layers", at_least(1), at_most(1 << 24)),
          option_field<&Parameters::use_bias>("use_bias", "whether layers have a bias"),
          option_field<&Parameters::biases>("biases", "whether each layer has a bias, one entry a layer"),
          option_field<&Parameters::activation>("activation", "what follows each layer: Relu or Non"),
          option_field<&Parameters::activations>("activations", "what follows each layer, one entry a layer"),
          option_field<&Parameters::weight_init>("weight_init", "initial weights"),
          option_field<&Parameters::bias_init>("bias_init", "initial biases"));
    }
  };
  Parameters mlp_param;

  static constexpr auto fields() {
    return option_list(
        option_field<&MlpOptions::mlp_param>("mlp_param", "sizes, activations, initial values", required()));
  }
};

/** [B, n] -> [B, num_outputs.back()]. Parameters i.weight [in, out] and, with a bias, i.bias [out] of each layer i. */
class Mlp final : public Layer {
 public:
  using Options = MlpOptions;
  Mlp(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  nn::ParameterArena& parameters_;
  struct Sublayer {
    size_t weight, bias;
    bool has_bias;
  };
  std::vector<Sublayer> layers_;
  std::vector<Activation> activations_;
  std::vector<Tensor> weights_, biases_;  // set at the first pass, when the arena is allocated
};

}  // namespace tercel::recsys
