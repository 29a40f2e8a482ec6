// The cross network of DCN.
#pragma once

#include "tercel/recsys/layers/initializer.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

struct MultiCrossOptions {
  struct Parameters {
    int64_t num_layers = 1;
    int64_t projection_dim = 0;
    Initializer weight_init = Initializer::Default;
    Initializer bias_init = Initializer::Default;

    static constexpr auto fields() {
      return option_list(
          option_field<&Parameters::num_layers>("num_layers", "number of cross layers", at_least(1), at_most(1000),
                                                required()),
          option_field<&Parameters::projection_dim>(
              "projection_dim", "rank of the matrices; 0: vectors, as in the first DCN", at_least(0), at_most(1 << 24)),
          option_field<&Parameters::weight_init>("weight_init", "initial weights"),
          option_field<&Parameters::bias_init>("bias_init", "initial biases"));
    }
  };
  Parameters mc_param;

  static constexpr auto fields() {
    return option_list(
        option_field<&MultiCrossOptions::mc_param>("mc_param", "number and rank of the layers", required()));
  }
};

/**
 * [B, n] -> [B, n]. With projection_dim 0, x' = x0 (x . w) + b + x (Wang et al., "Deep & cross network", 2017),
 * parameters i.weight [1, n], i.bias [n]. With rank p, x' = x0 * (x U V + b) + x (Wang et al., "DCN V2", 2020),
 * parameters i.u [n, p], i.v [p, n], i.bias [n].
 */
class MultiCross final : public Layer {
 public:
  using Options = MultiCrossOptions;
  MultiCross(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  struct Cross {
    size_t u, v, bias;  // u: the vector w when there is no v
  };
  nn::ParameterArena& parameters_;
  std::vector<Cross> layers_;
  bool projects_;
};

}  // namespace tercel::recsys
