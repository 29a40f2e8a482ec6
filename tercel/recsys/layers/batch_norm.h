// Batch normalization.
#pragma once

#include "tercel/recsys/layers/layer.h"
#include "tercel/recsys/layers/norm_parts.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

struct BatchNormLayerOptions {
  struct Parameters {
    double factor = 1.0;
    double eps = 1e-5;
    NormInit gamma_init = NormInit::Default;
    NormInit beta_init = NormInit::Default;

    static constexpr auto fields() {
      return option_list(option_field<&Parameters::factor>(
                             "factor", "weight of the last batch in the running statistics", above(0), at_most(1)),
                         option_field<&Parameters::eps>("eps", "added to the variance", above(0)),
                         option_field<&Parameters::gamma_init>("gamma_init", "initial scale"),
                         option_field<&Parameters::beta_init>("beta_init", "initial shift"));
    }
  };
  Parameters bn_param;

  static constexpr auto fields() {
    return option_list(
        option_field<&BatchNormLayerOptions::bn_param>("bn_param", "running statistics and their guard"));
  }
};

/**
 * [B, n] -> [B, n]: gamma (x - mean) / sqrt(variance + eps) + beta, with batch statistics in training, running
 * statistics in evaluation. A batch of one row uses the running statistics and does not update them. Parameters
 * gamma [n], beta [n]; buffers running_mean [n], running_var [n].
 */
class BatchNorm final : public Layer {
 public:
  using Options = BatchNormLayerOptions;
  BatchNorm(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
  void allocate(const TensorOptions& place) override;
  std::vector<std::pair<std::string, Tensor>> buffers() override;

 private:
  nn::ParameterArena& parameters_;
  std::string name_;
  BatchNormLayerOptions::Parameters options_;
  GammaAndBeta of_;
  RunningStatistics running_;
};

}  // namespace tercel::recsys
