#include "tercel/recsys/layers/dice.h"

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"

namespace tercel::recsys {

PReluDice::PReluDice(const Options& options, BuildContext& context)
    : Layer(context), name_(context.name), options_(options.prelu_dice_param) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.size() != 1)
    refuse_inputs(context, "one input [batch, n]");
  add_top(context.bottoms[0].sizes);
}

void PReluDice::allocate(const TensorOptions& place) { running_.allocate(tops()[0].sizes[0], place); }

void PReluDice::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) {
  const Tensor& x = bottoms[0];
  const Tensor gate = sigmoid(running_.normalize(x, context, options_.factor, options_.eps));
  tops[0] = mul(x, add(mul(gate, 1 - options_.alpha), options_.alpha));
}

std::vector<std::pair<std::string, Tensor>> PReluDice::buffers() { return running_.buffers(name_); }

}  // namespace tercel::recsys
