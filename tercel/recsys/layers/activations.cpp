#include "tercel/recsys/layers/activations.h"

#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/nn/dropout.h"

namespace tercel::recsys {

namespace {

DimVector only_input(const BuildContext& context) {
  if (context.bottoms.size() != 1) refuse_inputs(context, "one input");
  return context.bottoms[0].sizes;
}

}  // namespace

Relu::Relu(const Options&, BuildContext& context) : Layer(context) { add_top(only_input(context)); }
void Relu::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  tops[0] = relu(bottoms[0]);
}

Sigmoid::Sigmoid(const Options&, BuildContext& context) : Layer(context) { add_top(only_input(context)); }
void Sigmoid::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  tops[0] = sigmoid(bottoms[0]);
}

Dropout::Dropout(const Options& options, BuildContext& context) : Layer(context), rate_(options.rate) {
  add_top(only_input(context));
}
void Dropout::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) {
  tops[0] = dropout(bottoms[0], rate_, context.training, context.generator);
}

}  // namespace tercel::recsys
