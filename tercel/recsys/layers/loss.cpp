#include "tercel/recsys/layers/loss.h"

#include "tercel/ops/elementwise/binary.h"

namespace tercel::recsys {

LossLayer::LossLayer(const LossOptions& options, const BuildContext& context, std::string_view expected)
    : Layer(context), weight_(options.weight) {
  if (context.bottoms.size() != 2 || rows_per_sample() != 1) refuse_inputs(context, expected);
  columns_ = numel_of(context.bottoms[0].sizes);
  add_top(TensorShape(DimVector(), 0));
}

void LossLayer::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) {
  const Tensor &logits = bottoms[0], &labels = bottoms[1];
  const bool is_part = context.global_rows != 0 && context.global_rows != logits.size(0);
  double factor = weight_;
  // Not the mean times a share: a part may have no rows.
  if (is_part) factor /= static_cast<double>(context.global_rows * columns_);
  const Tensor loss = reduced(logits, labels, is_part ? Reduction::Sum : Reduction::Mean);
  tops[0] = factor == 1 ? loss : mul(loss, factor);
}

namespace {
constexpr std::string_view kExpected = "a logit [batch, 1] and a label [batch, 1]";
}

BinaryCrossEntropyLoss::BinaryCrossEntropyLoss(const Options& options, BuildContext& context)
    : LossLayer(options, context, kExpected) {
  const TensorShape column{1};
  if (context.bottoms[0] != column || context.bottoms[1] != column) refuse_inputs(context, kExpected);
}

Tensor BinaryCrossEntropyLoss::reduced(const Tensor& logits, const Tensor& labels, Reduction reduction) const {
  return binary_cross_entropy_with_logits(logits, labels, {}, reduction);
}

}  // namespace tercel::recsys
