// Batch normalization.
#pragma once

#include <array>
#include <tuple>

#include "tercel/recsys/layers/layer.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/** Default is 1 for gamma and 0 for beta. */
enum class BatchNormInit : uint8_t { Default, Zero };

constexpr auto enum_names(BatchNormInit) {
  return std::to_array<EnumName<BatchNormInit>>({{BatchNormInit::Default, "Default"}, {BatchNormInit::Zero, "Zero"}});
}

struct BatchNormLayerOptions {
  struct Parameters {
    double factor = 1.0;
    double eps = 1e-5;
    BatchNormInit gamma_init = BatchNormInit::Default;
    BatchNormInit beta_init = BatchNormInit::Default;

    static constexpr auto fields() {
      return std::tuple(Field{"factor", &Parameters::factor, "weight of the last batch in the running statistics",
                              above(0), at_most(1)},
                        Field{"eps", &Parameters::eps, "added to the variance", above(0)},
                        Field{"gamma_init", &Parameters::gamma_init, "initial scale"},
                        Field{"beta_init", &Parameters::beta_init, "initial shift"});
    }
  };
  Parameters bn_param;

  static constexpr auto fields() {
    return std::tuple(Field{"bn_param", &BatchNormLayerOptions::bn_param, "running statistics and their guard"});
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
  size_t gamma_, beta_;
  Tensor running_mean_, running_var_;
};

}  // namespace tercel::recsys
