// Loss layers.
#pragma once

#include "tercel/recsys/layers/activations.h"
#include "tercel/recsys/layers/layer.h"

namespace tercel::recsys {

/**
 * Logits [B, 1] and labels [B, 1] -> the mean binary cross entropy, a scalar. The probability is the sigmoid of the
 * logit.
 */
class BinaryCrossEntropyLoss final : public Layer {
 public:
  using Options = NoOptions;
  BinaryCrossEntropyLoss(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
};

}  // namespace tercel::recsys
