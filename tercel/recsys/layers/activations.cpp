#include "tercel/recsys/layers/activations.h"

#include "tercel/ops/elementwise/activation.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/nn/dropout.h"
#include "tercel/recsys/part_seed.h"

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

Elu::Elu(const Options& options, BuildContext& context) : Layer(context), alpha_(options.elu_param.alpha) {
  add_top(only_input(context));
}
void Elu::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  tops[0] = elu(bottoms[0], alpha_);
}

Cast::Cast(const Options&, BuildContext& context) : Layer(context) { add_top(only_input(context)); }
void Cast::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) { tops[0] = bottoms[0]; }

Dropout::Dropout(const Options& options, BuildContext& context)
    : Layer(context), name_(context.name), rate_(options.rate) {
  add_top(only_input(context));
}
void Dropout::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) {
  const Tensor& x = bottoms[0];
  if (!context.training) {
    tops[0] = x;
    return;
  }
  DropoutMask mask{seed_of_part(context.seed, name_), static_cast<uint64_t>(context.step), 0};
  if (x.numel() > 0) mask.first = context.first_row * rows_per_sample() * (x.numel() / x.size(0));
  tops[0] = dropout(x, rate_, mask);
}

}  // namespace tercel::recsys
