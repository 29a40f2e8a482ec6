#include "tercel/recsys/layers/interaction.h"

#include "tercel/ops/interaction.h"

namespace tercel::recsys {

Interaction::Interaction(const Options&, BuildContext& context) {
  const auto& in = context.bottoms;
  if (in.size() != 2 || in[0].size() != 1 || in[1].size() != 2 || in[0][0] != in[1][1])
    refuse_inputs(context, "two inputs [batch, d] and [batch, slots, d]");
  const int64_t d = in[0][0], slots = in[1][0];
  tops_.push_back({d + slots * (slots + 1) / 2 + 1});
}

void Interaction::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  tops[0] = dot_interaction(bottoms[0], bottoms[1], /*pad=*/true);
}

FmOrder2::FmOrder2(const Options& options, BuildContext& context) : dim_(options.out_dim) {
  if (context.bottoms.size() != 1 || context.bottoms[0].size() != 1 || context.bottoms[0][0] % dim_ != 0)
    refuse_inputs(context, str_cat({"one input [batch, slots * ", dim_, "]"}));
  tops_.push_back({dim_});
}

void FmOrder2::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  tops[0] = fm_order2(bottoms[0], dim_);
}

}  // namespace tercel::recsys
