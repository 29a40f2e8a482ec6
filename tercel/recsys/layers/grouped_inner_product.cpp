#include "tercel/recsys/layers/grouped_inner_product.h"

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/views/permute.h"

namespace tercel::recsys {

GroupedInnerProduct::GroupedInnerProduct(const Options& options, BuildContext& context)
    : Layer(context), parameters_(context.parameters) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.size() != 2)
    refuse_inputs(context, "one input [batch, groups, n]");
  const int64_t groups = context.bottoms[0].sizes[0], in = context.bottoms[0].sizes[1];
  const int64_t out = options.fc_param.num_output;
  const std::string name(context.name);
  weight_ = parameters_.reserve(name + ".weight", {groups, in, out}, initial_weight(options.fc_param, in));
  bias_ = parameters_.reserve(name + ".bias", {groups, 1, out}, initial_bias(options.fc_param));
  add_top(DimVector{groups, out});
}

void GroupedInnerProduct::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor by_group = transpose(bottoms[0], 0, 1);  // [G, B, n]
  const Tensor y = add(bmm(by_group, parameters_[weight_]), parameters_[bias_]);
  tops[0] = contiguous(transpose(y, 0, 1));
}

}  // namespace tercel::recsys
