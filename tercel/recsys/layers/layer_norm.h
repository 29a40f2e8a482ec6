// Layer normalization.
#pragma once

#include "tercel/recsys/layers/layer.h"
#include "tercel/recsys/layers/norm_parts.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

struct LayerNormOptions {
  struct Parameters {
    double eps = 1e-5;
    NormInit gamma_init = NormInit::Default;
    NormInit beta_init = NormInit::Default;

    static constexpr auto fields() {
      return option_list(option_field<&Parameters::eps>("eps", "added to the variance", above(0)),
                         option_field<&Parameters::gamma_init>("gamma_init", "initial scale"),
                         option_field<&Parameters::beta_init>("beta_init", "initial shift"));
    }
  };
  Parameters ln_param;

  static constexpr auto fields() {
    return option_list(
        option_field<&LayerNormOptions::ln_param>("ln_param", "guard of the variance and initial values"));
  }
};

/**
 * [B, ..., n] -> the same: gamma (x - mean) / sqrt(variance + eps) + beta, with mean and variance of each row of n (Ba
 * et al., "Layer normalization", 2016). Parameters gamma [n], beta [n].
 */
class LayerNorm final : public Layer {
 public:
  using Options = LayerNormOptions;
  LayerNorm(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  nn::ParameterArena& parameters_;
  double eps_;
  GammaAndBeta of_;
};

}  // namespace tercel::recsys
