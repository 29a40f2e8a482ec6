#include "tercel/recsys/layers/interaction.h"

#include "tercel/ops/nn/interaction.h"

namespace tercel::recsys {

Interaction::Interaction(const Options&, BuildContext& context) : Layer(context) {
  std::vector<DimVector> in;
  for (const TensorShape& shape : context.bottoms) in.push_back(shape.sizes);
  const bool one = in.size() == 1 && in[0].size() == 2;
  const bool two = in.size() == 2 && in[0].size() == 1 && in[1].size() == 2 && in[0][0] == in[1][1];
  if (!one && !two) refuse_inputs(context, "inputs [batch, d] and [batch, slots, d], or the second alone,");
  const int64_t vectors = in.back()[0] + (two ? 1 : 0);
  add_top(DimVector{numel_of(in[0]) + vectors * (vectors - 1) / 2 + 1});
}

void Interaction::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const bool one = bottoms.size() == 1;
  tops[0] = dot_interaction(one ? Tensor() : bottoms[0], one ? bottoms[0] : bottoms[1], /*pad=*/true);
}

FmOrder2::FmOrder2(const Options& options, BuildContext& context) : Layer(context), dim_(options.out_dim) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.size() != 1 || context.bottoms[0].sizes[0] % dim_ != 0)
    refuse_inputs(context, str_cat({"one input [batch, slots * ", dim_, "]"}));
  add_top(DimVector{dim_});
}

void FmOrder2::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  tops[0] = fm_order2(bottoms[0], dim_);
}

}  // namespace tercel::recsys
