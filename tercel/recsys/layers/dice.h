// The activation of DIN.
#pragma once

#include <string>

#include "tercel/recsys/layers/layer.h"
#include "tercel/recsys/layers/norm_parts.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

struct PReluDiceOptions {
  struct Parameters {
    double alpha = 1;
    double eps = 1e-5;
    double factor = 0.1;

    static constexpr auto fields() {
      return option_list(option_field<&Parameters::alpha>("alpha", "slope where the gate is closed"),
                         option_field<&Parameters::eps>("eps", "added to the variance", above(0)),
                         option_field<&Parameters::factor>(
                             "factor", "weight of the last batch in the running statistics", above(0), at_most(1)));
    }
  };
  Parameters prelu_dice_param;

  static constexpr auto fields() {
    return option_list(option_field<&PReluDiceOptions::prelu_dice_param>("prelu_dice_param", "slope and statistics"));
  }
};

/**
 * Dice of DIN (Zhou et al., "Deep interest network", 2018): [B, n] -> [B, n], p x + (1 - p) alpha x with the gate
 * p = sigmoid((x - mean) / sqrt(variance + eps)) of each column. Mean and variance are the batch's in training, of
 * which gradients take account, and the running ones in evaluation, as the paper has it; a batch of one row uses the
 * running ones too. Buffers running_mean [n], running_var [n].
 */
class PReluDice final : public Layer {
 public:
  using Options = PReluDiceOptions;
  PReluDice(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
  void allocate(const TensorOptions& place) override;
  std::vector<std::pair<std::string, Tensor>> buffers() override;

 private:
  std::string name_;
  PReluDiceOptions::Parameters options_;
  RunningStatistics running_;
};

}  // namespace tercel::recsys
