#include "tercel/recsys/layers/loss.h"

#include "tercel/ops/nn/loss.h"

namespace tercel::recsys {

BinaryCrossEntropyLoss::BinaryCrossEntropyLoss(const Options&, BuildContext& context) {
  const auto& in = context.bottoms;
  if (in.size() != 2 || in[0].size() != 1 || in[0][0] != 1 || IntSpan(in[0]) != IntSpan(in[1]))
    refuse_inputs(context, "a logit [batch, 1] and a label [batch, 1]");
  tops_.push_back({});
}

void BinaryCrossEntropyLoss::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  tops[0] = binary_cross_entropy_with_logits(bottoms[0], bottoms[1]);
}

}  // namespace tercel::recsys
