#include "tercel/recsys/layers/loss.h"

#include "tercel/ops/elementwise/binary.h"

namespace tercel::recsys {

LossLayer::LossLayer(const LossOptions& options, const BuildContext& context) : Layer(context), options_(options) {
  const TensorShape column{1};
  if (context.bottoms.size() != 2 || context.bottoms[0] != column || context.bottoms[1] != column)
    refuse_inputs(context, "a logit [batch, 1] and a label [batch, 1]");
  add_top(TensorShape::with_rows({}, 0));
}

void LossLayer::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) {
  const Tensor &logits = bottoms[0], &labels = bottoms[1];
  const bool is_part = context.global_rows != 0 && context.global_rows != logits.size(0);
  double factor = options_.weight;
  // Not the mean times a share: a part may have no rows.
  if (is_part) factor /= static_cast<double>(context.global_rows);
  const Tensor loss = reduced(logits, labels, is_part ? Reduction::Sum : Reduction::Mean);
  tops[0] = factor == 1 ? loss : mul(loss, factor);
}

Tensor BinaryCrossEntropyLoss::reduced(const Tensor& logits, const Tensor& labels, Reduction reduction) const {
  return binary_cross_entropy_with_logits(logits, labels, {}, reduction);
}

}  // namespace tercel::recsys
